"""Rewrites test files into two variants, in which each chosen test passes in one and fails in the other.

    python __main__.py verdict.variants ANSWER < request

Nothing of the project is imported or run. The request is JSON:

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

import base64
import json
import random
import sys

from .falsify import OTHER, WRONG, comparisons, end_assertions, helper, script_end, script_exits
from .source import MADE, Definitions, Replacement, expects_failure


class Rewriting:
    """The two variants of the test files that a request asks for.

    Each definition that is varied gets changes, which are written at the end; chance draws what they look like.
    """

    def __init__(self, request):
        self._request = request
        self._chance = random.Random(request["seed"])
        self._tests = Definitions(request["files"], request["script"], request["tests"])
        self._known = {}  # {name of a definition: Definition}
        self._definitions_of = {}  # {test: [name of a definition]}
        self._false_in = {}  # {path: variant} of the files whose tests are all true or all false in a variant
        self._changes = {}  # {path: [(change, the variant in which its text is the false one)]}
        self._facts = {}  # {name of a definition: what the answer says of it}

    def answer(self):
        """The answer to the request."""
        self._find_definitions()
        for name in self._wanted():
            self._falsify(name)
        written = self._write()
        return {
            "variants": written,
            "tests": {
                test: [each for each in names if each in self._facts] for test, names in self._definitions_of.items()
            },
            "definitions": self._facts,
            "strict": [
                test
                for test, names in self._definitions_of.items()
                if names and not self._tests.may_expect_failure(names)
            ],
        }

    def _find_definitions(self):
        """Finds out which definitions each test has, and which files are true or false as a whole."""
        together = set()
        for test in self._request["tests"]:
            found = self._tests.of(test)
            if not found:
                found = self._tests.makers_of(test)
                together.update(name.partition("::")[0] for name in found)
            if test.endswith(".py"):
                together.add(test)
            self._known.update(found)
            self._definitions_of[test] = sorted(found)
        self._false_in = {path: self._chance.randrange(2) for path in sorted(together)}

    def _wanted(self):
        """The definitions to be varied."""
        proven = self._request["proven"]
        if proven is None:
            asked = {name for test in self._request["vary"] for name in self._definitions_of.get(test, ())}
        else:
            asked = set(proven)
        return sorted(asked & set(self._known))

    def _falsify(self, name):
        """Adds the changes that make a definition false in one variant; none if nothing can make it false for sure."""
        definition, proven = self._known[name], self._request["proven"] or {}
        file = definition.file
        sites, ends = self._places(definition)
        if not ends:
            return
        numbers = proven.get(name, range(len(sites)) if self._request["all"] else ())
        chosen = [sites[number] for number in numbers]
        wrong, false_in = None, 1
        if self._request["draw"]:
            false_in = self._false_in.get(file.path, self._chance.randrange(2))
            certain = [site for site in chosen if site.always_runs]
            wrong = self._chance.choice([None, self._chance.choice(certain)]) if certain else None
        changes = _changes(name, chosen, ends, wrong)
        if not definition.functions:
            changes += [each for site in script_exits(file, file.tree) for each in site.changes(WRONG, None)]
        self._changes.setdefault(file.path, []).extend((each, false_in) for each in changes)
        self._facts[name] = {
            "path": file.path,
            "false_in": false_in,
            "comparisons": [sites.index(each) for each in chosen],
            "fails_at": [],
            "asks_at": [],
        }

    def _places(self, definition):
        """The comparisons of a definition, and where it gets assertions at its end: nowhere, if it is to stay true."""
        file, functions = definition.file, definition.functions
        if not functions:
            return [], script_end(file, self._chance)
        if definition.makes:
            is_proven = self._request["proven"] is not None or self._request["all"]
            ends = [end for each in functions for end in end_assertions(file, each, self._chance)] if is_proven else []
            return [], ends
        if expects_failure(definition):
            return [], []
        return comparisons(file, functions[0], self._chance), end_assertions(file, functions[0], self._chance)

    def _write(self):
        """The contents of both variants' files. Adds to the facts at which lines definitions fail and ask."""
        written = [{}, {}]
        for path, changes in self._changes.items():
            file = self._tests.file(path)
            changes += [(each, 0) for each in helper(file)]
            for number in (0, 1):
                data, places = _written(file, changes, number)
                written[number][path] = base64.b64encode(data).decode("ascii")
                for (name, kind), spans in places.items():  # The same lines in both variants.
                    self._facts[name].update({kind: spans})
            made = self._facts.get(path + MADE, {"fails_at": []})
            for fact in self._facts.values():  # Other tests of the file may run the same functions.
                if fact["path"] == path and fact is not made:
                    fact["fails_at"] = fact["fails_at"] + made["fails_at"]
        return written


def _changes(name, chosen, ends, wrong):
    """The changes that make a definition false at one comparison, `wrong`, or at its end if that is None."""
    found = []
    for site in chosen:
        label = (name, "fails_at" if site is wrong else "asks_at", site.start)
        found.extend(site.changes(WRONG if site is wrong else OTHER, label))
    for start, end, frame, texts in ends:
        label = (name, "asks_at" if wrong else "fails_at", start)
        found.append(Replacement(start, end, [frame.replace("{}", text) for text in texts], label))
    return found


def _written(file, changes, number):
    """(content of a variant, {(definition, kind): [first line, last line] of each place}).

    the file holds    assert add(1, 2) == 3
    changes           [(Replacement(20, 21, ["3", "7"], ("t.py::test_add", "fails_at", 20)), 1)]
    number 0 gives    assert add(1, 2) == 3    and {("t.py::test_add", "fails_at"): [[1, 1]]}
    number 1 gives    assert add(1, 2) == 7    and the same
    """
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


def main(arguments):
    """Answers the request on standard input."""
    answer = Rewriting(json.loads(sys.stdin.read())).answer()
    with open(arguments[0], "w") as stream:
        json.dump(answer, stream)
    return 0
