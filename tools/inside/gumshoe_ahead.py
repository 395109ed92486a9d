"""What pytest does at its start that hangs on nothing of a repository, done ahead. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later. A run of a few tests spends most of its time before the
first one: pytest registers its own plugins, looks for fixtures in them, and asks the installed distributions for each
plugin that it is told to load. A process that has loaded pytest and waits for its order can do that while it waits.
Where pytest is not as we know it, or a run differs from what was prepared for, pytest does all of it itself.
"""

import abc
import os
import sys
import types
import warnings

OURS = "gumshoe_"
UNREAD = ("PYTHONPATH", "PYTHONUNBUFFERED", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_VERSION", "TERM", "NO_COLOR")
"""Variables that pytest does not read while it registers its own plugins."""
_KNOWN_NAMES = {"Config", "InvocationParams", "Path", "PytestPluginManager", "args", "consider_preparse", "cwd"}
_KNOWN_NAMES |= {"default_plugins", "import_plugin", "invocation_params", "pathlib", "resolve"}
"""All that pytest's `get_config` of any version that we know refers to."""
_FIXTURE_SIGNS = ("_pytestfixturefunction", "__pytest_wrapped__", "__wrapped__")
_PLAIN = (str, bytes, int, float, bool, type(None), tuple, list, dict, set, frozenset, types.ModuleType)
# Held from here on, whatever stands in their places later.
_dir, _id, _map, _tuple, _vars = dir, id, map, tuple, vars


def prepare(arguments, command):
    """Does it. `arguments` are those that pytest will get, `command` is how it calls itself in its usage."""
    _keep_config(arguments, command)
    _keep_names()


def _keep_config(arguments, command):
    """Makes the next `get_config` return a configuration that is made now, if it is asked for the same."""
    config = sys.modules.get("_pytest.config")
    original = getattr(config, "get_config", None)
    code = getattr(original, "__code__", None)
    if code is None or code.co_varnames[:2] != ("args", "plugins") or not _KNOWN_NAMES.issuperset(code.co_names):
        return
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if code.co_argcount != 2 or named not in ((), ("prog",)) or not hasattr(config.Config, "InvocationParams"):
        return
    options = dict.fromkeys(named, command)
    named_plugins = _plugins_among(arguments)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            kept = [original(list(arguments), None, **options)]
        except BaseException:  # whatever is wrong with it, the run says so
            return
    if caught:
        return
    environment = _environment()

    def get_config(args=None, plugins=None, **others):
        fits = others == options and _plugins_among(args or ()) == named_plugins and _environment() == environment
        if not kept or not fits:
            return original(args, plugins, **others)
        found = kept.pop()
        before = found.invocation_params
        found.invocation_params = type(before)(args=args or (), plugins=plugins, dir=type(before.dir)(os.getcwd()))
        return found

    config.get_config = get_config


def _plugins_among(arguments):
    """The arguments that name plugins."""
    found = []
    waiting = False
    for each in arguments:
        if waiting or str(each).startswith("-p"):
            found.append(each)
        waiting = each == "-p"
    return found


def _environment():
    return {name: value for name, value in os.environ.items() if name not in UNREAD and not name.startswith("GUMSHOE_")}


def _keep_names():
    """Has pytest look for fixtures only where there may be some in its own modules, as long as these are unchanged."""
    fixtures = sys.modules.get("_pytest.fixtures")
    if fixtures is None or "dir" in vars(fixtures):
        return
    kept = {}

    def names_in(value):
        known = kept.get(_id(value)) if type(value) is types.ModuleType else kept.get(_id(type(value)))
        return _dir(value) if known is None else known.names_of(value)

    vars(fixtures)["dir"] = names_in
    modules = {name: each for name, each in list(sys.modules.items()) if name.startswith("_pytest.")}
    for module in modules.values():
        if type(module) is types.ModuleType:
            kept[id(module)] = _Names(module, [module])
            for kind in [each for each in vars(module).values() if isinstance(each, type)]:
                ours = [each for each in kind.__mro__ if each.__module__ in modules]
                if {type(kind).__dir__, kind.__dir__} == {type.__dir__, object.__dir__} and _is_whole(kind, ours):
                    kept[id(kind)] = _Names(kind, ours)


def _is_whole(kind, owners):
    """Whether no other class adds to this one."""
    return set(kind.__mro__) <= {*owners, object, abc.ABC}


class _Names:
    """The names in a module, or in the objects of a class, that pytest has to look at.

    Args:
        owner: the module or the class.
        owners: whose attributes these are.
    """

    def __init__(self, owner, owners):
        self._owner = owner
        self._spaces = [(each, dict(vars(each)), _ids(vars(each))) for each in owners]
        self._names = {name for _, space, _ in self._spaces for name, value in space.items() if _may_be_fixture(value)}

    def names_of(self, value):
        """What `dir` says of the owner or of one of its objects, without what was no fixture and is unchanged."""
        found = set(self._names)
        changed = [(_vars(owner), space) for owner, space, ids in self._spaces if _ids(_vars(owner)) != ids]
        for now, before in changed:
            found.update(name for name, each in now.items() if before.get(name, before) is not each)
        if value is not self._owner and hasattr(value, "__dict__"):
            found.update(_vars(value))
        return sorted(found.intersection(_dir(value)) if changed else found)


def _ids(space):
    return _tuple(_map(_id, space.values()))


def _may_be_fixture(value):
    """Whether pytest may see a fixture in a value, or one that is wrapped."""
    if isinstance(value, _PLAIN):
        return False
    if isinstance(value, types.FunctionType):
        return bool(vars(value))
    if isinstance(value, (type, types.BuiltinFunctionType)):
        return any(hasattr(value, sign) for sign in _FIXTURE_SIGNS)
    return True


def pass_over_ours():
    """Has pytest not ask the installed distributions for plugins of ours, which are in none."""
    manager = getattr(sys.modules.get("_pytest.config"), "PytestPluginManager", None)
    original = getattr(manager, "load_setuptools_entrypoints", None)
    if original is None:
        return

    def load_setuptools_entrypoints(self, *given, **named):
        name = named.get("name") or (given[1] if len(given) > 1 else None)
        return 0 if str(name).startswith(OURS) else original(self, *given, **named)

    manager.load_setuptools_entrypoints = load_setuptools_entrypoints
