"""The source of test files, as text and as a tree: where tests are defined, and what takes the place of a piece.

Tests are found by the ids that pytest, unittest, Django and sympy give them, without running anything.
"""

import ast
import contextlib
import io
import os
import re
import tokenize

from ..functions import FUNCTIONS, SCOPES

_DJANGO = re.compile(r"^(\w+) \(([\w.]+)\)")
_EXPECTED_FAILURE = re.compile(r"xfail|expectedfailure", re.IGNORECASE)
MADE = "::<made>"
"""Ends the name of the definition of tests that are made at run time, after the path of their file."""
_DEPTH = 10
"""How many base classes are followed to an inherited test."""


class Replacement:
    """A piece of a file that is replaced.

    Attributes:
        start, end: offsets in the text; equal for an insertion.
        texts: what stands there where the test holds, and where it is false.
        label: whose lines these are, or None.
    """

    def __init__(self, start, end, texts, label=None):
        self.start, self.end, self.texts, self.label = start, end, texts, label


class SourceText:
    """The text of a file, with the offsets of what the parser has found.

    Attributes:
        helper: the name of a function that is to be put at the end of the file, once it is needed.
    """

    def __init__(self, text):
        self.text = text
        self.helper = None
        self._lines = text.split("\n")
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._logical = {}
        for first, last, end, semicolon in _logical_lines(text):
            whole = (last, self._starts[end[0] - 1] + end[1], semicolon)
            self._logical.update((line, whole) for line in range(first, last + 1))

    def at(self, line, column):
        """The offset of a place that the parser names: a line, and a column in UTF-8."""
        text = self._lines[line - 1]
        return self._starts[line - 1] + len(text.encode("utf-8")[:column].decode("utf-8", "ignore"))

    def span(self, node):
        """(start, end) of an expression; Python 3.8 and later."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def logical_line(self, line):
        """(last line, offset of the end, whether a semicolon is there) of the logical line with a line."""
        return self._logical[line]

    def indentation(self, line):
        """The white space before a line."""
        text = self._lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def below(self, line):
        """(start, end) of the blank line after a line, or of the place for a new one."""
        end = self._starts[line] - 1
        blank = line + 1 < len(self._lines) and not self._lines[line].strip()
        return end, self._starts[line + 1] - 1 if blank else end


def _logical_lines(text):
    """(first line, last line, (line, column) of the end, whether a semicolon is there) of each logical line."""
    first, last = 0, None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE and last is not None:
            yield first, token.start[0], last.end, last.string == ";"
            first, last = 0, None
        elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            first, last = first or token.start[0], token


class TestFile(SourceText):
    """One parsed test file. Raises SyntaxError, ValueError and LookupError for what cannot be parsed."""

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

    def find(self, names, body=None):
        """The functions or classes that a dotted name stands for, the last definition first, with their classes."""
        found = []
        for node in reversed(list(_statements(self.tree.body if body is None else body))):
            if getattr(node, "name", None) == names[0]:
                if len(names) == 1:
                    found.append((node,))
                elif isinstance(node, ast.ClassDef):
                    found.extend((node, *rest) for rest in self.find(names[1:], node.body))
        return found

    def makers(self, names):
        """Functions that a test with these names may run: decorated ones in its class whose name begins its own, else
        those that are defined inside of others, except in tests.
        """
        decorated, inner = [], []
        for node, around in _functions(self.tree.body):
            if not node.name.startswith("test"):
                inner += [each for each in ast.walk(node) if isinstance(each, FUNCTIONS) and each is not node]
            elif node.decorator_list and names == [*(each.name for each in around), names[-1]]:
                decorated += [node] if names[-1].startswith(node.name) else []
        return decorated or inner


class Definition:
    """What defines tests: a function, or several that may make them at run time, or a whole script.

    Attributes:
        file: its TestFile.
        functions: none for a script.
        classes: those around the function, outermost first.
        makes: whether the functions make tests, rather than being one.
    """

    def __init__(self, file, functions, classes=(), makes=False):
        self.file, self.functions, self.classes, self.makes = file, functions, classes, makes


class Definitions:
    """Finds the functions that define tests, without running anything.

    Args:
        files: the paths of all files that may hold them.
        script: the program that the tests are run by, if it is a script.
        tests: the ids of the tests.
    """

    def __init__(self, files, script, tests):
        self.paths = list(files)
        self.script = script
        self._parsed = {}
        # Django's runner shows the first line of a test's docstring in place of its name.
        titles = {test for test in tests if " " in test and "::" not in test and not _DJANGO.match(test)}
        self._titled = self._find_titles(titles) if titles else {}

    def of(self, test):
        """The definitions of a test id, by their names."""
        if test == self.script:
            file = self.file(test)
            return {} if file is None else {test + "::": Definition(file, [])}
        if test.endswith(".py"):
            return self._all_in(test)
        if test in self._titled:
            return self._titled[test]
        for path, names in self._readings(test):
            file = self.file(path)
            found = {} if file is None else self._named(file, names, 0)
            if found:
                return found
        return {}

    def makers_of(self, test):
        """The definition, by its name, of a test that is made at run time."""
        for path, names in self._readings(test):
            file = self.file(path)
            functions = [] if file is None or not names or "." in names[-1] else file.makers(names)
            if functions:
                return {path + MADE: Definition(file, functions, makes=True)}
        return {}

    def file(self, path):
        """The parsed file of a path; None where it cannot be parsed or must not be changed."""
        if path not in self._parsed:
            self._parsed[path] = None
            if path in self.paths:
                with contextlib.suppress(OSError, SyntaxError, ValueError, LookupError, RecursionError):
                    self._parsed[path] = TestFile(path)
        return self._parsed[path]

    def may_expect_failure(self, names):
        """Whether a test with definitions of these names may be expected to fail: its file, or a conftest above it,
        mentions that.
        """
        found = False
        for path in {name.partition("::")[0] for name in names}:
            found = found or bool(_EXPECTED_FAILURE.search(self.file(path).text))
            while path:
                path = os.path.dirname(path)
                with contextlib.suppress(OSError), open(os.path.join(path, "conftest.py"), "rb") as stream:
                    found = found or bool(_EXPECTED_FAILURE.search(stream.read().decode("latin-1")))
        return found

    def _readings(self, test):
        """(path, names) that a test id may stand for."""
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
            for name in ("/".join(words[:count]) + ".py", "/".join([*words[:count], "__init__.py"])):
                readings.extend((path, words[count:]) for path in self._ending(name))
        if words[0] == "__main__" and self.script:
            readings.append((self.script, words[1:]))
        return readings or [(path, words) for path in self.paths]

    def _ending(self, name):
        """The paths that end with a path, which may be relative to another folder; the exact one alone if it exists."""
        name = os.path.normpath(name)
        return [name] if name in self.paths else [path for path in self.paths if path.endswith("/" + name)]

    def _named(self, file, names, depth):
        for nodes in file.find(names):
            if isinstance(nodes[-1], FUNCTIONS):
                name = ".".join(node.name for node in nodes)
                return {"{}::{}".format(file.path, name): Definition(file, [nodes[-1]], nodes[:-1])}
        for nodes in file.find(names[:-1]) if len(names) > 1 and depth < _DEPTH else ():
            for base in getattr(nodes[-1], "bases", ()):
                for path, base_names in self._base(file, base):
                    other = self.file(path)
                    found = {} if other is None else self._named(other, [*base_names, names[-1]], depth + 1)
                    if found:
                        return found
        return {}

    def _base(self, file, base):
        """(path, names) that a base class may have."""
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
                module = (node.module or "").replace(".", "/")
                for alias in node.names:
                    if (alias.asname or alias.name) == words[0]:
                        whole = os.path.join(folder if node.level else "", module)
                        places += [(path, [alias.name, *words[1:]]) for path in self._module(whole)]
                        places += [(path, words[1:]) for path in self._module(os.path.join(whole, alias.name))]
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    name = (alias.asname or alias.name).split(".")
                    if words[: len(name)] == name:
                        rest = words[len(name) :]
                        places += [(path, rest) for path in self._module(alias.name.replace(".", "/"))]
        return [(path, names) for path, names in places if names]

    def _module(self, path):
        return [*self._ending(path + ".py"), *self._ending(path + "/__init__.py")] if path else []

    def _find_titles(self, titles):
        """The definitions by name, by the title of tests that go by their docstrings."""
        found = {}
        for path in self.paths:
            with contextlib.suppress(OSError), open(path, "rb") as stream:
                text = stream.read().decode("utf-8", "replace")
                file = self.file(path) if any(title in text for title in titles) else None
                for node, around in _functions(file.tree.body) if file is not None else ():
                    title = (ast.get_docstring(node) or "").partition("\n")[0].strip()
                    if title in titles:
                        name = ".".join(each.name for each in (*around, node))
                        found.setdefault(title, {})["{}::{}".format(path, name)] = Definition(file, [node], around)
        return found

    def _all_in(self, path):
        """Every test function of a file."""
        file, found = self.file(path), {}
        for node, around in _functions(file.tree.body) if file is not None else ():
            if node.name.startswith("test"):
                name = ".".join(each.name for each in (*around, node))
                found["{}::{}".format(path, name)] = Definition(file, [node], around)
        return found


def _statements(body):
    """The statements of a module or class, those under conditions too."""
    for node in body:
        yield node
        if not isinstance(node, SCOPES):
            for name in ("body", "orelse", "finalbody"):
                for inner in _statements(getattr(node, name, ())):
                    yield inner
            for handler in getattr(node, "handlers", ()):
                for inner in _statements(handler.body):
                    yield inner


def _functions(body, around=()):
    for node in _statements(body):
        if isinstance(node, FUNCTIONS):
            yield node, around
        elif isinstance(node, ast.ClassDef):
            for each in _functions(node.body, (*around, node)):
                yield each


def expects_failure(definition):
    """Whether a decorator of a test or its classes expects it to fail."""
    for node in (*definition.functions, *definition.classes):
        for decorator in getattr(node, "decorator_list", ()):
            if _EXPECTED_FAILURE.search(ast.dump(decorator)):
                return True
    return False
