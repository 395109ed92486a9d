"""Rewrites test files into two variants, in which each chosen test passes in one and fails in the other.

    python gumshoe_variants.py ANSWER < request

Standard library only, Python 3.6 to 3.14. Nothing of the project is imported or run. The request is JSON:

    {"tests": [test id], "vary": [test id], "proven": null or {definition: [number of a comparison]},
     "files": [paths of test files that may be rewritten], "script": path or null, "seed": text,
     "draw": bool, "all": bool}

A definition is `path::Class.function`; all tests that run it share its variants. Tests that are made at run time have
no function by their name: they share `path::<made>`, which stands for the functions that may make them, and all tests
of the file are true or false together. They are varied only if that is proven to work. `vary` names the tests to vary
where nothing is proven; otherwise exactly the proven definitions are varied. Without `draw`, every definition holds in
the first variant and fails at its end in the second one. With `all`, unproven comparisons are changed, too. The file
ANSWER holds

    {"variants": [{path: content in base64}, the same], "tests": {test id: [definition]},
     "definitions": {definition: {"path", "false_in": 0 or 1, "comparisons": [number of each changed comparison],
                                  "fails_at": [[first line, last line]], "asks_at": [[first line, last line]]}},
     "strict": [test that nothing in its file or the conftests above expects to fail]}

The two variants of a file have the same size and the same lines. Where a test is false, its comparisons ask for another
value than the expected one (`asks_at`): all but one have to find it unequal; that one, or an assertion at the end, has
to fail (`fails_at`).
"""

import ast
import base64
import contextlib
import io
import json
import os
import random
import re
import sys
import tokenize

from gumshoe_falsify import (
    OTHER,
    WRONG,
    Replacement,
    SourceText,
    comparisons,
    end_assertions,
    helper,
    script_end,
    script_exits,
)

_DJANGO = re.compile(r"^(\w+) \(([\w.]+)\)")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_EXPECTED_FAILURE = re.compile(r"xfail|expectedfailure", re.IGNORECASE)
_DEPTH = 10


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
                inner += [each for each in ast.walk(node) if isinstance(each, _FUNCTIONS) and each is not node]
            elif node.decorator_list and names == [*(each.name for each in around), names[-1]]:
                decorated += [node] if names[-1].startswith(node.name) else []
        return decorated or inner


class Tests:
    """Finds the functions that define tests, without running anything.

    Args:
        files: the paths of all files that may hold them.
        script: the program that the tests are run by, if it is a script.
        titles: the ids that are the first lines of docstrings.
    """

    def __init__(self, files, script, titles=()):
        self.paths = list(files)
        self.script = script
        self._parsed = {}
        self._titled = self._find_titles(titles) if titles else {}

    def definitions(self, test):
        """{definition: (file, function, classes around it)} of a test id; the function is None for a whole script."""
        if test == self.script:
            file = self.file(test)
            return {} if file is None else {test + "::": (file, None, ())}
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

    def made(self, test):
        """{definition: (file, functions, ())} of a test that is made at run time."""
        for path, names in self._readings(test):
            file = self.file(path)
            functions = [] if file is None or not names or "." in names[-1] else file.makers(names)
            if functions:
                return {path + "::<made>": (file, functions, ())}
        return {}

    def file(self, path):
        """The parsed file of a path; None where it cannot be parsed or must not be changed."""
        if path not in self._parsed:
            self._parsed[path] = None
            if path in self.paths:
                with contextlib.suppress(OSError, SyntaxError, ValueError, LookupError, RecursionError):
                    self._parsed[path] = TestFile(path)
        return self._parsed[path]

    def expects_failures(self, definitions):
        """Whether a test may be expected to fail: its file, or a conftest above it, mentions that."""
        found = False
        for path in {name.partition("::")[0] for name in definitions}:
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
            if isinstance(nodes[-1], _FUNCTIONS):
                name = ".".join(node.name for node in nodes)
                return {"{}::{}".format(file.path, name): (file, nodes[-1], nodes[:-1])}
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
        """{title: {definition: (file, function, classes around it)}} of tests that go by their docstrings."""
        found = {}
        for path in self.paths:
            with contextlib.suppress(OSError), open(path, "rb") as stream:
                text = stream.read().decode("utf-8", "replace")
                file = self.file(path) if any(title in text for title in titles) else None
                for node, around in _functions(file.tree.body) if file is not None else ():
                    title = (ast.get_docstring(node) or "").partition("\n")[0].strip()
                    if title in titles:
                        name = ".".join(each.name for each in (*around, node))
                        found.setdefault(title, {})["{}::{}".format(path, name)] = (file, node, around)
        return found

    def _all_in(self, path):
        """Every test function of a file."""
        file, found = self.file(path), {}
        for node, around in _functions(file.tree.body) if file is not None else ():
            if node.name.startswith("test"):
                name = ".".join(each.name for each in (*around, node))
                found["{}::{}".format(path, name)] = (file, node, around)
        return found


def _statements(body):
    """The statements of a module or class, those under conditions too."""
    for node in body:
        yield node
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                for inner in _statements(getattr(node, name, ())):
                    yield inner
            for handler in getattr(node, "handlers", ()):
                for inner in _statements(handler.body):
                    yield inner


def _functions(body, around=()):
    for node in _statements(body):
        if isinstance(node, _FUNCTIONS):
            yield node, around
        elif isinstance(node, ast.ClassDef):
            for each in _functions(node.body, (*around, node)):
                yield each


def _expects_failure(nodes):
    """Whether a decorator of a test or its classes expects it to fail."""
    for node in nodes:
        for decorator in getattr(node, "decorator_list", ()):
            if _EXPECTED_FAILURE.search(ast.dump(decorator)):
                return True
    return False


def variants(request):
    """The answer to a request."""
    chance = random.Random(request["seed"])
    titles = {test for test in request["tests"] if " " in test and "::" not in test and not _DJANGO.match(test)}
    tests = Tests(request["files"], request["script"], titles)
    known, of_test, together = {}, {}, {}
    for test in request["tests"]:
        found = tests.definitions(test)
        if not found:
            found = tests.made(test)
            together.update({name.partition("::")[0]: None for name in found})
        known.update(found)
        of_test[test] = sorted(found)
        if test.endswith(".py"):
            together[test] = None
    together = {path: chance.randrange(2) for path in sorted(together)}  # These files pass or fail as one.
    proven = request["proven"]
    wanted = {each for test in request["vary"] for each in of_test.get(test, ())} if proven is None else set(proven)
    changes, facts = {}, {}
    for name in sorted(wanted & set(known)):
        file, function, around = known[name]
        is_made = isinstance(function, list)
        if is_made and proven is None and not request["all"]:
            continue
        if isinstance(function, _FUNCTIONS) and _expects_failure((function, *around)):
            continue
        sites = [] if is_made else comparisons(file, function, chance)
        chosen = [sites[number] for number in (proven or {}).get(name, range(len(sites) * request["all"]))]
        if is_made:
            ends = [end for each in function for end in end_assertions(file, each, chance)]
        else:
            ends = script_end(file, chance) if function is None else end_assertions(file, function, chance)
        if ends:
            false_in = together.get(file.path, chance.randrange(2)) if request["draw"] else 1
            wrong = chance.choice([None, chance.choice(chosen)]) if request["draw"] and chosen else None
            made = _falsified(name, chosen, ends, wrong)
            if function is None:
                made += [each for site in script_exits(file, file.tree) for each in site.changes(WRONG, None)]
            changes.setdefault(file.path, []).extend((each, false_in) for each in made)
            numbers = [sites.index(each) for each in chosen]
            facts[name] = {
                "path": file.path,
                "false_in": false_in,
                "comparisons": numbers,
                "fails_at": [],
                "asks_at": [],
            }
    written = [{}, {}]
    for path, found in changes.items():
        file = tests.file(path)
        found += [(each, 0) for each in helper(file)]
        for number in (0, 1):
            data, places = _written(file, found, number)
            written[number][path] = base64.b64encode(data).decode("ascii")
            for (name, kind), spans in places.items():  # The same lines in both variants.
                facts[name].update({kind: spans})
        made = facts.get(path + "::<made>", {"fails_at": []})
        for fact in facts.values():  # Other tests of the file may run the same functions.
            if fact["path"] == path and fact is not made:
                fact["fails_at"] = fact["fails_at"] + made["fails_at"]
    return {
        "variants": written,
        "tests": {test: [each for each in names if each in facts] for test, names in of_test.items()},
        "definitions": facts,
        "strict": [test for test, names in of_test.items() if names and not tests.expects_failures(names)],
    }


def _falsified(name, chosen, ends, wrong):
    """The changes that make a definition false at one comparison, or at its end."""
    found = []
    for site in chosen:
        label = (name, "fails_at" if site is wrong else "asks_at", site.start)
        found.extend(site.changes(WRONG if site is wrong else OTHER, label))
    for start, end, frame, texts in ends:
        label = (name, "asks_at" if wrong else "fails_at", start)
        found.append(Replacement(start, end, [frame.replace("{}", text) for text in texts], label))
    return found


def _written(file, changes, number):
    """(content of a variant, {(definition, kind): [first line, last line] of each place})."""
    pieces, at, line, places = [], 0, 1, {}
    ordered = sorted(enumerate(changes), key=lambda each: (each[1][0].start, each[1][0].end, each[0]))
    for _, (change, false_in) in ordered:
        kept = file.text[at : change.start]
        text = change.texts[number == false_in]
        line += kept.count("\n")
        if change.label is not None:
            name, kind, start = change.label
            first = line + len(text) - len(text.lstrip("\n"))
            span = places.setdefault((name, kind), {}).setdefault(start, [first, first])
            span[1] = line + text.rstrip("\n").count("\n")
        line += text.count("\n")
        pieces += [kept, text]
        at = change.end
    text = "".join(pieces) + file.text[at:]
    return text.encode(file.encoding), {key: sorted(spans.values()) for key, spans in places.items()}


def main():
    """Answers the request on standard input."""
    answer = variants(json.loads(sys.stdin.read()))
    with open(sys.argv[1], "w") as stream:
        json.dump(answer, stream)


if __name__ == "__main__":
    main()
