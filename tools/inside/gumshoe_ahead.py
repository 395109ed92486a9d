"""Does ahead of time what pytest does at startup that depends on no repository. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14, pytest 3.6 and later. A run of a few tests spends most of its time before the
first one: pytest registers its own plugins, looks for fixtures in them, and asks the installed distributions for each
plugin that it is told to load. A process that has loaded pytest and waits for its order can do that while it waits.
Where this pytest is not one we know, or a run differs from what was prepared for, pytest does all of it itself.
"""

import argparse
import os
import sys
import types
import warnings

OURS, PYTESTS = "gumshoe_", "_pytest."
OWNER = "_pytest.config.argparsing"
UNREAD = (
    *("PYTHONPATH", "PYTHONUNBUFFERED", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_VERSION", "TERM", "NO_COLOR"),
    "TOX_OVERRIDE",
)
"""Variables that pytest does not read while it registers its own plugins."""
_KNOWN_NAMES = {
    *("Config", "InvocationParams", "Path", "PytestPluginManager", "args", "consider_preparse", "cwd"),
    *("default_plugins", "import_plugin", "invocation_params", "pathlib", "resolve"),
}
"""Everything that `get_config` refers to in any pytest version we know."""
_PARSER_NAMES = {
    *("FILE_OR_DIR", "MyOptionParser", "_anonymous", "_groups", "_pytest._argcomplete", "add_argument"),
    *("add_argument_group", "attrs", "completer", "description", "extra_info", "filescompleter", "name", "names"),
    *("options", "prog"),
}
"""Everything that `Parser._getparser` refers to in any version before pytest 9; later ones keep their parser."""
_FIXTURE_SIGNS = ("_pytestfixturefunction", "__pytest_wrapped__", "__wrapped__")
_PLAIN = {
    *(str, bytes, int, float, bool, type(None), tuple, list, dict, set, frozenset, types.ModuleType),
    *(type(object.__init__), type(str.join), type(dict.fromkeys), types.BuiltinFunctionType),
}
# Kept from now on, whatever replaces them later.
_dir, _vars = dir, vars


def prepare(arguments, command):
    """Prepares pytest. `arguments` are those it will get, `command` is what it calls itself in its usage message."""
    _keep_parser()
    _keep_config(arguments, command)
    _pass_over_names()


def _keep_config(arguments, command):
    """Makes the next `get_config` return a configuration made now, if it is asked for the same one."""
    config = sys.modules.get("_pytest.config")
    original = getattr(config, "get_config", None)
    code = getattr(original, "__code__", None)
    if (
        original is None
        or code is None
        or code.co_varnames[:2] != ("args", "plugins")
        or not _KNOWN_NAMES.issuperset(code.co_names)
    ):
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
            kept[0]._parser.parse_known_args([])  # builds the option parser
        except BaseException:  # whatever is wrong, the run will report it
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


def _keep_parser():
    """Has pytest build its option parser only when the options have changed, instead of seven times in a run."""
    kind = getattr(sys.modules.get(OWNER), "Parser", None)
    original = getattr(kind, "_getparser", None)
    code = getattr(original, "__code__", None)
    if original is None or code is None or not _PARSER_NAMES.issuperset(code.co_names):
        return
    kept = {}

    def _getparser(self):
        if sys._getframe(1).f_globals.get("__name__") != OWNER:  # this caller may want to change it
            return original(self)
        if kept.get("of") is not self or not _is_equal(kept["options"], _options_of(self)):
            made = original(self)
            kept.update(of=self, options=_options_of(self), made=made)
        made = kept["made"]
        made.extra_info = self.extra_info
        made.prog = argparse.ArgumentParser(prog=self.prog, add_help=False).prog  # the program running now
        return made

    kind._getparser = _getparser


def _options_of(parser):
    """Everything that an option parser is built from."""
    groups = [
        (group.name, group.description, [(dict(vars(each)), dict(each._attrs)) for each in group.options])
        for group in [*parser._groups, parser._anonymous]
    ]
    return vars(parser).get("_usage"), groups


def _is_equal(one, other):
    try:
        return bool(one == other)
    except Exception:  # option attributes may be anything
        return False


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


def _pass_over_names():
    """Has pytest look for fixtures in its own modules and objects only among attributes that may be fixtures."""
    fixtures = sys.modules.get("_pytest.fixtures")
    if fixtures is None or "dir" in vars(fixtures):
        return

    def names_in(value):
        names = _dir(value)
        if type(value) is types.ModuleType:
            ours, own, spaces = value.__name__.startswith(PYTESTS), {}, [_vars(value)]
        else:
            ours = type(value).__module__.startswith(PYTESTS)
            own, spaces = getattr(value, "__dict__", {}), [_vars(each) for each in reversed(type(value).__mro__)]
        if not ours:
            return names
        known = {}
        for space in spaces:
            known.update(space)
        return [name for name in names if name in own or name not in known or _may_be_fixture(known[name])]

    vars(fixtures)["dir"] = names_in


def _may_be_fixture(value):
    """Whether pytest may see a value as a fixture, or as a wrapped one."""
    kind = type(value)
    if kind in _PLAIN:
        return False
    if kind is types.FunctionType:
        return bool(value.__dict__)
    return kind is not type or any(hasattr(value, sign) for sign in _FIXTURE_SIGNS)


def pass_over_ours():
    """Keeps pytest from asking the installed distributions for our own plugins, which are in none of them."""
    manager = getattr(sys.modules.get("_pytest.config"), "PytestPluginManager", None)
    original = getattr(manager, "load_setuptools_entrypoints", None)
    if original is None:
        return

    def load_setuptools_entrypoints(self, *given, **named):
        name = named.get("name") or (given[1] if len(given) > 1 else None)
        return 0 if str(name).startswith(OURS) else original(self, *given, **named)

    manager.load_setuptools_entrypoints = load_setuptools_entrypoints
