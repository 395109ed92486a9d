"""Rewrites test files into two variants, in which each chosen test passes in one and fails in the other.

    python __main__.py verdict.variants ANSWER < request

Nothing of the project is imported or run. The request is JSON:

    {"tests": [test id], "vary": [test id], "proven": null or {definition: [number of a comparison]},
     "files": [paths of test files that may be rewritten], "script": path or null, "seed": text,
     "draw": bool, "all": bool}

A definition is `path::Class.function`; all tests that run it share its variants. Tests that are made at run time have
no function by their name: they share `path::<made>`, which stands for the functions that may make them, and all tests
of the file are true or false together. They are varied only if that is proven to work, or with `all`. `vary` names the
tests to vary where nothing is proven; otherwise exactly the proven definitions are varied. Without `draw`, every
definition holds in the first variant and fails at its end in the second one. With `all`, unproven comparisons are
changed, too. The file ANSWER holds

    {"contents": [{path: content in base64}, the same], "tests": {test id: [definition]},
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

from .definitions import Definitions
from .falsify import Falsifier
from .source import OTHER, WRONG, SiteChange, write_variant


class Rewriting:
    """The two variants of the test files that a request asks for; chance draws what they look like."""

    def __init__(self, request):
        self._request = request
        self._chance = random.Random(request["seed"])
        self._falsifiers = {}  # {path: Falsifier}

    def answer(self):
        """The answer to the request."""
        request = self._request
        finder = Definitions(request["files"], request["script"], request["tests"])
        definitions_of = {test: finder.of(test) for test in request["tests"]}
        known = {each.name: each for definitions in definitions_of.values() for each in definitions}
        names_of = {test: sorted({each.name for each in found}) for test, found in definitions_of.items()}
        lenient = {file for file in {each.file for each in known.values()} if file.may_expect_failure()}
        whole = {each.file.path for each in known.values() if each.makes_tests}
        whole.update(test for test in request["tests"] if test.endswith(".py"))
        # In these files, all tests are true in one variant, and all are false in the other.
        false_in = {path: self._chance.randrange(2) for path in sorted(whole)}
        wanted = self._wanted(names_of) & set(known)
        falsified = [self._falsify(known[name], false_in.get(known[name].file.path)) for name in sorted(wanted)]
        contents, facts = self._write([each for each in falsified if each is not None])
        return {
            "contents": contents,
            "tests": {test: [name for name in names if name in facts] for test, names in names_of.items()},
            "definitions": facts,
            "strict": [
                test
                for test, found in definitions_of.items()
                if found and not any(each.file in lenient for each in found)
            ],
        }

    def _wanted(self, names_of):
        """The names of the definitions to be varied, of those that each test has."""
        if self._request["proven"] is not None:
            return set(self._request["proven"])
        return {name for test in self._request["vary"] for name in names_of.get(test, ())}

    def _falsify(self, definition, file_false_in):
        """The `Falsified` definition, or None if nothing can make it false for sure. `file_false_in` is the variant in
        which all tests of its file are false; with None, chance draws one.
        """
        path = definition.file.path
        if path not in self._falsifiers:
            self._falsifiers[path] = Falsifier(definition.file, self._chance)
        sites, ends = self._sites(definition)
        if not ends:
            return None
        proven = (self._request["proven"] or {}).get(definition.name, range(len(sites)) if self._request["all"] else ())
        chosen = [sites[number] for number in proven]
        wrong, false_in = None, 1
        if self._request["draw"]:
            false_in = self._chance.randrange(2) if file_false_in is None else file_false_in
            certain = [site for site in chosen if site.always_runs]
            wrong = self._chance.choice([None, self._chance.choice(certain)]) if certain else None
        changes = [SiteChange(site, WRONG if site is wrong else OTHER, false_in) for site in chosen]
        changes += [SiteChange(site, OTHER if wrong else WRONG, false_in) for site in ends]
        ways_out = [] if definition.functions else self._falsifiers[path].script_exits()
        exits = [SiteChange(site, WRONG, false_in) for site in ways_out]
        return Falsified(definition, false_in, list(proven), changes, exits)

    def _sites(self, definition):
        """The comparisons of a definition, and the assertions at its end: none, if it is to stay true."""
        falsifier, functions = self._falsifiers[definition.file.path], definition.functions
        if not functions:
            return [], falsifier.script_end()
        if definition.makes_tests:
            is_proven = self._request["proven"] is not None or self._request["all"]
            ends = [end for each in functions for end in falsifier.end_assertions(each)] if is_proven else []
            return [], ends
        if definition.expects_failure():
            return [], []
        return falsifier.comparisons(functions[0]), falsifier.end_assertions(functions[0])

    def _write(self, falsified):
        """The "contents" and the "definitions" of the answer."""
        contents, facts, of_file = [{}, {}], {}, {}
        for each in falsified:
            of_file.setdefault(each.definition.file, []).append(each)
        for file, definitions in of_file.items():
            changes = [change for each in definitions for change in (*each.changes, *each.exits)]
            changes += [SiteChange(site, OTHER, 0) for site in self._falsifiers[file.path].helper()]
            for number in (0, 1):
                text, lines = write_variant(file.text, changes, number)
                contents[number][file.path] = base64.b64encode(text.encode(file.encoding)).decode("ascii")
            of_this = {each: each.facts(lines) for each in definitions}  # Both have the same lines.
            made = next((fact for each, fact in of_this.items() if each.definition.makes_tests), None)
            for each, fact in of_this.items():
                if made is not None and fact is not made:  # Other tests of the file may run the same functions.
                    fact["fails_at"] += made["fails_at"]
                facts[each.definition.name] = fact
        return contents, facts


class Falsified:
    """A definition that is false in one variant.

    Attributes:
        definition: what is false.
        false_in: the number of that variant.
        comparisons: the numbers of those comparisons that are changed.
        changes: the sites at which its tests ask for something else.
        exits: further ones, where a script ends.
    """

    def __init__(self, definition, false_in, comparisons, changes, exits):
        self.definition, self.false_in, self.comparisons = definition, false_in, comparisons
        self.changes, self.exits = changes, exits

    def facts(self, lines):
        """What the answer says of it; `lines` has the first and last line of each site."""
        return {
            "path": self.definition.file.path,
            "false_in": self.false_in,
            "comparisons": self.comparisons,
            "fails_at": sorted(lines[each.site] for each in self.changes if each.asks_for == WRONG),
            "asks_at": sorted(lines[each.site] for each in self.changes if each.asks_for == OTHER),
        }


def main(arguments):
    """Answers the request on standard input."""
    answer = Rewriting(json.loads(sys.stdin.read())).answer()
    with open(arguments[0], "w") as stream:
        json.dump(answer, stream)
    return 0
