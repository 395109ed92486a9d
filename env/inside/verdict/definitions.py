"""Where tests are defined: found by the ids that pytest, unittest, Django and sympy give them, without running any."""

import ast
import contextlib
import io
import os
import re
import tokenize

from ..functions import FUNCTIONS, SCOPES
from .source import SourceText

_DJANGO = re.compile(r"^(\w+) \(([\w.]+)\)")
_EXPECTED_FAILURE = re.compile(r"xfail|expectedfailure", re.IGNORECASE)
_DEPTH = 10
"""How many base classes are followed to an inherited test."""


class TestFile(SourceText):
    """One parsed test file. Raises SyntaxError, ValueError and LookupError for what cannot be parsed.

    Attributes:
        path, encoding, tree: of the file.
    """

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as stream:
            data = stream.read()
        self.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        text = data.decode(self.encoding)
        if "\r" in text.replace("\r\n", "") or "\f" in text:
            raise ValueError("its lines cannot be counted")
        self.tree = ast.parse(text)
        super().__init__(text)
        self._members = list(_members_of(self.tree.body))

    def definitions(self):
        """The functions of the module and its classes, each as a `Definition`."""
        return [self._definition(nodes) for nodes in self._members if isinstance(nodes[-1], FUNCTIONS)]

    def find(self, names):
        """The definition of the function that goes by these names, its own and those of its classes; or None."""
        found = (nodes for nodes in self._named(names) if isinstance(nodes[-1], FUNCTIONS))
        return next((self._definition(nodes) for nodes in found), None)

    def bases(self, names):
        """The base classes, as expressions, of the classes that go by these names."""
        return [base for nodes in self._named(names) for base in getattr(nodes[-1], "bases", ())]

    def makers(self, names):
        """Functions that a test with these names may run: decorated ones in its class whose name begins its own, else
        those that are defined inside of others, except in tests.
        """
        decorated, inner = [], []
        for definition in self.definitions():
            (function,) = definition.functions
            if not function.name.startswith("test"):
                inner += [each for each in ast.walk(function) if isinstance(each, FUNCTIONS) and each is not function]
            elif function.decorator_list and names[:-1] == [each.name for each in definition.classes]:
                decorated += [function] if names[-1].startswith(function.name) else []
        return decorated or inner

    def may_expect_failure(self):
        """Whether the file, or a conftest above it, mentions that tests may be expected to fail."""
        if _EXPECTED_FAILURE.search(self.text):
            return True
        folder = self.path
        while folder:
            folder = os.path.dirname(folder)
            with contextlib.suppress(OSError), open(os.path.join(folder, "conftest.py"), "rb") as stream:
                if _EXPECTED_FAILURE.search(stream.read().decode("latin-1")):
                    return True
        return False

    def _named(self, names):
        """The members with these names, the last first, which is the one that the name stands for at run time."""
        return [nodes for nodes in reversed(self._members) if [node.name for node in nodes] == names]

    def _definition(self, nodes):
        name = "{}::{}".format(self.path, ".".join(node.name for node in nodes))
        return Definition(name, self, nodes[-1:], nodes[:-1])


def _members_of(body, classes=()):
    """The functions and classes of a module and of its classes, each as a tuple: the classes around it, and itself."""
    for node in _statements(body):
        if isinstance(node, SCOPES):
            yield (*classes, node)
        if isinstance(node, ast.ClassDef):
            yield from _members_of(node.body, (*classes, node))


def _statements(body):
    """The statements of a module or class, those under conditions too."""
    for node in body:
        yield node
        if not isinstance(node, SCOPES):
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, ()))
            for handler in getattr(node, "handlers", ()):
                yield from _statements(handler.body)


class Definition:
    """What defines tests: a function, or several that may make them at run time, or a whole script.

    Attributes:
        name: `path::Class.function`; `path::<made>` for functions that make tests, `path::` for a script.
        file: its TestFile.
        functions: none for a script.
        classes: those around the function, outermost first.
        makes_tests: whether the functions make tests, rather than being one.
    """

    def __init__(self, name, file, functions, classes=(), makes_tests=False):
        self.name, self.file, self.functions, self.classes = name, file, functions, classes
        self.makes_tests = makes_tests

    def expects_failure(self):
        """Whether a decorator of the test or its classes expects it to fail."""
        decorators = [each for node in (*self.functions, *self.classes) for each in node.decorator_list]
        return any(_EXPECTED_FAILURE.search(ast.dump(each)) for each in decorators)


class Definitions:
    """Finds the definitions of tests, without running anything.

    Args:
        paths: all files that may hold them.
        script: the program that the tests are run by, if it is a script.
        tests: the ids of the tests.
    """

    def __init__(self, paths, script, tests):
        self._paths = list(paths)
        self._script = script
        self._parsed = {}
        # Django's runner shows the first line of a test's docstring in place of its name.
        titles = {test for test in tests if " " in test and "::" not in test and not _DJANGO.match(test)}
        self._titled = self._find_titles(titles) if titles else {}

    def of(self, test):
        """The definitions of a test, by its id. The first rule that finds any decides:

        | the id is                        | for example          | its definitions |
        |----------------------------------|----------------------|---|
        | the script                       | `check.py`           | the whole script |
        | the path of a file               | `tests/test_a.py`    | all functions there whose names begin with `test` |
        | the first line of a docstring    | `A user logs in`     | the functions that begin with it (Django's titles) |
        | the place and name of a function | see `_readings`      | that function, or the one that its class inherits |
        | the name of no function          | `test_a.py::made[0]` | the functions that may make it (`TestFile.makers`) |
        """
        if test == self._script:
            file = self._file(test)
            return [] if file is None else [Definition(test + "::", file, ())]
        if test.endswith(".py"):
            file = self._file(test)
            members = [] if file is None else file.definitions()
            found = [each for each in members if each.functions[0].name.startswith("test")]
            if found:
                return found
        if test in self._titled:
            return self._titled[test]
        for file, names in self._places(test):
            definition = self._find(file, names, 0)
            if definition is not None:
                return [definition]
        for file, names in self._places(test):
            functions = [] if "." in names[-1] else file.makers(names)
            if functions:
                return [Definition(file.path + "::<made>", file, functions, makes_tests=True)]
        return []

    def _file(self, path):
        """The parsed file of a path; None where it cannot be parsed or must not be changed."""
        if path not in self._parsed:
            self._parsed[path] = None
            if path in self._paths:
                with contextlib.suppress(OSError, SyntaxError, ValueError, LookupError, RecursionError):
                    self._parsed[path] = TestFile(path)
        return self._parsed[path]

    def _places(self, test):
        """(file, names) where a test may be defined, by its id."""
        for path, names in self._readings(test):
            file = self._file(path)
            if file is not None and names:
                yield file, names

    def _readings(self, test):
        """(path, names) that a test id may stand for. Names begin with the outermost class; parameters do not count.

        | given by | the id is                       | paths                            | names |
        |----------|---------------------------------|----------------------------------|---|
        | pytest   | `a/test_b.py::TestC::test_d[1]` | `a/test_b.py`, in any folder     | `TestC`, `test_d` |
        | unittest | `a.test_b.TestC.test_d`         | the same, or `a/test_b/__init__` | `TestC`, `test_d` |
        | Django   | `test_d (a.test_b.TestC)`       | as for unittest                  | `TestC`, `test_d` |
        | a script | `__main__.TestC.test_d`         | the script                       | `TestC`, `test_d` |
        | sympy    | `test_d`                        | all files                        | `test_d` |
        """
        test = test.partition("[")[0].strip()
        if "::" in test:
            path, names = test.partition("::")[0], [part for part in test.split("::")[1:] if part != "()"]
            return [(each, names) for each in self._ending(path)]
        django = _DJANGO.match(test)
        if django:
            method, place = django.groups()
            test = place if place.endswith("." + method) else place + "." + method
        words = test.split(".")
        readings = []
        for count in range(len(words) - 1, 0, -1):
            readings += [(path, words[count:]) for path in self._modules("/".join(words[:count]))]
        if words[0] == "__main__" and self._script:
            readings.append((self._script, words[1:]))
        return readings or [(path, words) for path in self._paths]

    def _modules(self, path):
        """The paths of modules and packages that end with a path without its suffix."""
        return [*self._ending(path + ".py"), *self._ending(path + "/__init__.py")]

    def _ending(self, name):
        """The paths that end with a path, which may be relative to another folder; the exact one alone if it exists."""
        name = os.path.normpath(name)
        return [name] if name in self._paths else [path for path in self._paths if path.endswith("/" + name)]

    def _find(self, file, names, depth):
        """The definition with these names in a file, or in a base class of its class; or None."""
        definition = file.find(names)
        if definition is not None or depth == _DEPTH:
            return definition
        for base in file.bases(names[:-1]):
            for path, base_names in self._readings_of_base(base, file):
                other = self._file(path)
                found = None if other is None else self._find(other, [*base_names, names[-1]], depth + 1)
                if found is not None:
                    return found
        return None

    def _readings_of_base(self, base, file):
        """(path, names) that a base class in a file may have: there, or where it is imported from."""
        words = []
        while isinstance(base, ast.Attribute):
            words.insert(0, base.attr)
            base = base.value
        if not isinstance(base, ast.Name):
            return []
        words.insert(0, base.id)
        places = [(file.path, words)]
        for node in _statements(file.tree.body):
            if isinstance(node, ast.ImportFrom):
                folder = file.path
                for _ in range(node.level):
                    folder = os.path.dirname(folder)
                module = os.path.join(folder if node.level else "", (node.module or "").replace(".", "/"))
                for alias in node.names:
                    if (alias.asname or alias.name) == words[0]:
                        if module:
                            places += [(path, [alias.name, *words[1:]]) for path in self._modules(module)]
                        places += [(path, words[1:]) for path in self._modules(os.path.join(module, alias.name))]
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    name = (alias.asname or alias.name).split(".")
                    if words[: len(name)] == name:
                        modules = self._modules(alias.name.replace(".", "/"))
                        places += [(path, words[len(name) :]) for path in modules]
        return [(path, names) for path, names in places if names]

    def _find_titles(self, titles):
        """The definitions of tests that go by the first lines of their docstrings, by these titles."""
        found = {}
        for path in self._paths:
            with contextlib.suppress(OSError), open(path, "rb") as stream:
                text = stream.read().decode("utf-8", "replace")
                file = self._file(path) if any(title in text for title in titles) else None
                for definition in [] if file is None else file.definitions():
                    title = (ast.get_docstring(definition.functions[0]) or "").partition("\n")[0].strip()
                    if title in titles:
                        found.setdefault(title, {})[definition.name] = definition
        return {title: list(definitions.values()) for title, definitions in found.items()}
