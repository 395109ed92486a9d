"""Notices code under test that changes the test runner. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14. What is compared: the functions, methods and properties of the runner's
modules, by identity and by code; what is new among them; the hooks that pytest calls; the importers; the exceptions
among the builtins. A difference counts when it was made by one of the files that a patch has changed, or by code that
comes from no file. Test suites may well change their runner: original files and installed packages are let be.
"""

import builtins
import sys

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
KINDS = (staticmethod, classmethod)
WRAPPED = 20


class Watch:
    """The state of the runner's modules, to compare with later ones.

    Args:
        packages: names of top-level packages and modules to watch.
        changed: whether the file of this name was changed by the patch.
    """

    def __init__(self, packages, changed):
        self._packages = packages
        self._changed = changed
        self._known = self._look()
        self._owners = {owner for owner, _ in self._known}
        self._builtins = dict(_exceptions())

    def differences(self, hooks=None):
        """What has been changed since the beginning, as short texts; `hooks` is pytest's `config.hook`."""
        found = []
        known = self._known
        now = self._look()
        for key, (value, codes) in now.items():
            before = known.get(key)
            if before is not None and before[0] is value and before[1] == codes:
                continue
            if before is None and key[0] not in self._owners:  # A module that was loaded meanwhile.
                continue
            if self._foreign(value, codes):
                found.append("{}.{} was changed".format(*key))
        found.extend("{} was removed".format(".".join(key)) for key in known if key not in now)
        now_builtins = dict(_exceptions())
        found.extend(
            "builtins.{} was changed".format(name)
            for name, value in self._builtins.items()
            if now_builtins.get(name) is not value
        )
        found.extend(self._importers())
        if hooks is not None:
            found.extend(self._hooks(hooks))
        return found

    def _look(self):
        """{(owner, name): (object, its codes)} of everything that can be called in the watched modules."""
        seen = {}
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in self._packages and module is not None:
                for attribute, value in list(vars(module).items()):
                    if isinstance(value, type) and value.__module__ == name:
                        for inner, member in list(vars(value).items()):
                            if callable(member) or isinstance(member, (property, *KINDS)):
                                seen["{}.{}".format(name, attribute), inner] = (member, _codes(member))
                    if callable(value):
                        seen[name, attribute] = (value, _codes(value))
        return seen

    def _foreign(self, value, codes):
        """Whether something that can be called came from a changed file, or from no file."""
        if isinstance(value, type):
            codes = [code for member in vars(value).values() for code in _codes(member)]
            return any(self._of_changed(code) for code in codes)
        return not codes or any(self._of_changed(code) for code in codes)

    def _of_changed(self, code):
        name = code.co_filename
        return name.startswith("<") or self._changed(name)

    def _importers(self):
        for finder in list(sys.meta_path):
            kind = finder if isinstance(finder, type) else type(finder)
            for name in ("find_spec", "find_module"):
                for code in _codes(vars(kind).get(name)):
                    if self._changed(code.co_filename):
                        yield "an importer was put in by {}".format(code.co_filename)

    def _hooks(self, hooks):
        for name in HOOKS:
            caller = getattr(hooks, name, None)
            for implementation in caller.get_hookimpls() if hasattr(caller, "get_hookimpls") else ():
                for code in _codes(implementation.function):
                    if self._of_changed(code):
                        yield "{} was hooked by {}".format(name, code.co_filename)


def _codes(value):
    """The code objects behind something that can be called, those of what it wraps included."""
    codes, waiting = [], [value]
    while waiting and len(codes) < WRAPPED:
        value = waiting.pop()
        if isinstance(value, property):
            waiting.extend([value.fget, value.fset])
        value = getattr(value, "__func__", value)
        code = getattr(value, "__code__", None)
        if code is not None:
            codes.append(code)
        wrapped = getattr(value, "__dict__", {}).get("__wrapped__")
        if wrapped is not None:
            waiting.append(wrapped)
    return codes


def _exceptions():
    for name, value in vars(builtins).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            yield name, value
