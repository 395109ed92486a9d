"""Notices code under test that changes the test runner. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14. What is compared: the functions, methods and properties of the runner's
modules, by identity and by code; what is new among them; the hooks that pytest calls; the importers; the exceptions
among the builtins. A difference counts if it was made by a file that the patch has changed, or by code that comes from
no file. Test suites may legitimately change their runner: original files and installed packages are left alone.
"""

import builtins
import contextlib
import sys
import types

HOOKS = (
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_runtest_makereport",
    "pytest_runtest_logstart",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
    "pytest_pyfunc_call",
    "pytest_collection_modifyitems",
    "pytest_exception_interact",
    "pytest_sessionfinish",
)
RUNNERS_OWN = ("unittest.signals._interrupt_handler",)
"""What runners, such as Django's, set themselves, and no outcome depends on."""
CODE = types.CodeType
KINDS = (staticmethod, classmethod)
METHODS = (*KINDS, types.MethodType)
WRAPPED = 20
# Kept from now on, whatever replaces them later.
_compile, _open = compile, open


class RunnerState:
    """The state of the runner's modules, to compare with later ones.

    Making it is the expensive part, and can be done ahead; comparisons are with the state as of `begin`.

    Args:
        packages: names of top-level packages and modules to watch.
    """

    def __init__(self, packages):
        self._packages = packages
        self._known = {}
        self._changed = lambda name: False
        self._builtins = {}
        self._note()

    def begin(self, changed):
        """Records the current state; `changed` tells whether the patch changed the file with a given name."""
        self._changed = changed
        self._note()
        self._builtins = dict(_exceptions())

    def differences(self, hooks=None):
        """What has been changed since the beginning, as short texts; `hooks` is pytest's `config.hook`."""
        found = []
        for owner, space in self._namespaces():
            known = self._known.get(owner)
            if known is None:  # A module or class that was loaded in the meantime.
                continue
            for name in known.differences(space):
                value = space.get(name)
                if "{}.{}".format(owner, name) in RUNNERS_OWN:
                    continue
                if name not in space:
                    found.append("{}.{} was removed".format(owner, name))
                elif self._foreign(value, _codes(value)):
                    found.append("{}.{} was changed".format(owner, name))
        now_builtins = dict(_exceptions())
        found.extend(
            "builtins.{} was changed".format(name)
            for name, value in self._builtins.items()
            if now_builtins.get(name) is not value
        )
        found.extend(self.intruders(hooks))
        return found

    def intruders(self, hooks=None):
        """The importers and the hooks that come from changed files, as short texts."""
        return [*self._importers(), *(self._hooks(hooks) if hooks is not None else ())]

    def _note(self):
        for owner, space in self._namespaces():
            known = self._known.get(owner)
            if known is None or known.differences(space):
                self._known[owner] = Namespace(space)

    def _namespaces(self):
        """(name, attributes) of the watched modules and of the classes that they define."""
        # The garbage collector may remove modules and members at any time, so everything is read from copies.
        for name, module in sys.modules.copy().items():
            if name.partition(".")[0] in self._packages and module is not None:
                space = dict(vars(module))
                yield name, space
                for attribute, value in space.items():
                    if isinstance(value, type) and value.__module__ == name:
                        yield "{}.{}".format(name, attribute), dict(vars(value))

    def _foreign(self, value, codes):
        """Whether a callable came from a changed file, or from no file."""
        if isinstance(value, type):
            codes = [code for member in vars(value).values() for code in _codes(member)]
            return any(self._of_changed(code) for code in codes)
        return not codes or any(self._of_changed(code) for code in codes)

    def _of_changed(self, code):
        name = code.co_filename
        return name.startswith("<") or self._changed(name)

    def _importers(self):
        finders = [*sys.meta_path, *sys.path_hooks, *sys.path_importer_cache.copy().values()]
        for finder in finders:
            kind = finder if isinstance(finder, type) else type(finder)
            methods = [vars(kind).get(name) for name in ("find_spec", "find_module", "__init__", "__call__")]
            for code in [code for each in (finder, *methods) for code in _codes(each)]:
                if self._changed(code.co_filename):
                    yield "an importer was put in by {}".format(code.co_filename)

    def _hooks(self, hooks):
        for name in HOOKS:
            caller = getattr(hooks, name, None)
            for implementation in caller.get_hookimpls() if hasattr(caller, "get_hookimpls") else ():
                for code in _codes(implementation.function):
                    if self._of_changed(code):
                        yield "{} was hooked by {}".format(name, code.co_filename)


class Namespace:
    """The callables among a module's or class's attributes, by identity and by code."""

    def __init__(self, space):
        self._values = dict(space)
        self._called = {name for name, value in space.items() if _is_called(value)}
        self._functions = [
            (name, each, each.__code__, _wrapped(each)) for name in self._called for each in _functions(space[name])
        ]

    def differences(self, space):
        """The names of what was changed, added or removed."""
        values = self._values
        found = {name for name, value in space.items() if values.get(name, values) is not value and _is_called(value)}
        found.update(name for name in self._called if name not in space)
        found.update(
            name
            for name, function, code, wrapped in self._functions
            if function.__code__ is not code or _wrapped(function) is not wrapped
        )
        return sorted(found)


def _is_called(value):
    return callable(value) or isinstance(value, (property, *KINDS))


def _codes(value):
    """The code objects behind a callable, including those of what it wraps."""
    return [function.__code__ for function in _functions(value)]


def _functions(value):
    """The functions behind a callable, including those it wraps."""
    found, waiting = [], [value]
    while waiting and len(found) < WRAPPED:
        value = waiting.pop()
        if isinstance(value, property):
            waiting.extend([value.fget, value.fset])
        if isinstance(value, METHODS):
            value = value.__func__
        # Some objects, such as unittest.mock.call, have any attribute they are asked for.
        if isinstance(getattr(value, "__code__", None), CODE):
            found.append(value)
        wrapped = _wrapped(value)
        if wrapped is not None:
            waiting.append(wrapped)
    return found


def _wrapped(value):
    return getattr(value, "__dict__", {}).get("__wrapped__")


def _exceptions():
    for name, value in vars(builtins).copy().items():
        if isinstance(value, type) and issubclass(value, BaseException):
            yield name, value


class Definitions:
    """The functions that test modules define, as the runner compiled them.

    Args:
        changed: whether the patch changed the file of this name.
    """

    def __init__(self, changed):
        self._changed = changed
        self._codes = set()
        self._names = {}

    def note(self, code):
        """Takes in the code of a module."""
        if not self._changed(code.co_filename):
            waiting = [code]
            while waiting:
                inner = [each for each in waiting.pop().co_consts if isinstance(each, CODE)]
                self._codes.update(inner)
                self._names.setdefault(code.co_filename, set()).update(each.co_name for each in inner)
                waiting.extend(inner)

    def load(self, module):
        """Takes in a module that was imported without the runner. Its file must not have changed since."""
        file = getattr(module, "__file__", None) or ""
        if file not in self._names and file.endswith(".py"):
            self._names[file] = set()
            with contextlib.suppress(OSError, SyntaxError, ValueError), _open(file, "rb") as source:
                self.note(_compile(source.read(), file, "exec", 0, True))

    def holds(self, function, name, module):
        """Whether a test of this name in a module is still what the module defines.

        It may also be a function from an original file, such as a decorator's, or what a decorator from a changed file
        made of the test.
        """
        known = self._names.get(getattr(module, "__file__", None), ())
        if name not in known or self._defined(function):
            return True
        if getattr(function, "__globals__", None) is vars(module):  # Its code comes from elsewhere.
            return False
        file = function.__code__.co_filename
        return not (self._changed(file) or file.startswith("<")) or any(map(self._defined, _held(function)))

    def _defined(self, function):
        return getattr(function, "__code__", None) in self._codes


def _held(function):
    """The functions that a decorated function refers to."""
    found = []
    while function is not None and len(found) < WRAPPED:
        found.append(function)
        for cell in getattr(function, "__closure__", None) or ():
            with contextlib.suppress(ValueError):  # An empty cell.
                found.append(cell.cell_contents)
        function = getattr(function, "__wrapped__", None)
    return found
