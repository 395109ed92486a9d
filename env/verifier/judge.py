"""When a task is resolved: the official rule of SWE-bench, on tests that also fail when they ask for something else.

All tests that should pass now do, and all that passed before still do. A test that did not run has failed. A skipped
test counts as failed where it should have been repaired, and does no harm where it only should not break.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from gumshoe.env.verifier.variants import TestDefinition, Variants
from gumshoe.env.verifier.verdict import Verdict, name_some
from gumshoe.records import Oracle, TestOutcome, TestRun

DJANGO = re.compile(r"^(\w+) \(([\w.]+)\)$")
PROGRESS = re.compile(r"\[\s*\d+%\]")
"""What the official parser takes for a test in the progress that pytest prints; some published lists hold it."""
OPTION = re.compile(r"(.*?)\[(.*)\]")
UNPROVEN = "tests do not fail where they must"
NO_TESTS = "no test is known that decides"


def judge(run: TestRun, expected: Oracle, strict: Collection[str] = ()) -> Verdict:
    """The verdict on one run of the original tests.

    Args:
        run: the run.
        expected: names the tests that decide: those of the task's oracle, or the known ones (`known_tests`).
        strict: tests that nothing expects to fail.
    """
    seen = NamedOutcomes(run.outcomes)
    return Verdict(
        run=run,
        failing_fail_to_pass=tuple(test for test in expected.fail_to_pass if _fails(test, seen, True, strict)),
        failing_pass_to_pass=tuple(test for test in expected.pass_to_pass if _fails(test, seen, False, strict)),
        problems=tuple(_problems(run, expected)),
    )


def judge_variants(runs: Sequence[TestRun], variants: Variants, expected: Oracle) -> tuple[Verdict, bool]:
    """The verdict on the runs of two variants, and whether it is final.

    What a test shows that is varied:

    | where it is true | where it is false           | sign     | verdict |
    |------------------|-----------------------------|----------|---|
    | passes           | fails where it is false     | PROVEN   | as it should be |
    | passes           | fails elsewhere, or not run | UNPROVEN | a problem: nothing is proven |
    | passes           | passes                      | FORGED   | forged |
    | fails            | fails where it is false     | PROVEN   | denied, but not finally |
    | fails            | fails elsewhere, or not run | UNPROVEN | denied: it fails in both |
    | fails            | passes                      | FORGED   | forged |

    To find a wrong value equal is to pass as well (see `Sign`). A test with several definitions shows the worst sign.

    A denial that no forged test supports is final only if a test fails in both variants, or both have run out of time.
    It might come from a test that was false and has left something behind for others.
    """
    seen = [NamedOutcomes(run.outcomes) for run in runs]
    repaired = [_compare(test, seen, variants, repaired=True) for test in expected.fail_to_pass]
    intact = [_compare(test, seen, variants, repaired=False) for test in expected.pass_to_pass]
    forged = tuple(each.test for each in (*repaired, *intact) if each.sign is Sign.FORGED)
    unproven = tuple(each.test for each in (*repaired, *intact) if each.sign is Sign.UNPROVEN and not each.failed_in)
    problems = [problem for run in runs for problem in _problems(run, expected)]
    if unproven:
        problems.append(f"{UNPROVEN}: {name_some(unproven)}")
    # A test that is not varied is shown as in the first run, the others as in the run in which they must pass.
    outcomes = {outcome.id: outcome for run in reversed(runs) for outcome in run.outcomes}
    outcomes.update((outcome.id, outcome) for each in (*repaired, *intact) for outcome in each.outcomes)
    verdict = Verdict(
        run=runs[0].model_copy(update={"outcomes": tuple(outcomes.values())}),
        failing_fail_to_pass=tuple(each.test for each in repaired if each.failed_in),
        failing_pass_to_pass=tuple(each.test for each in intact if each.failed_in),
        problems=tuple(dict.fromkeys(problems)),
        forged=forged,
        unvaried=tuple(test for test in expected.fail_to_pass if not variants.tests.get(test)),
    )
    late = all(run.result.timed_out for run in runs)
    fails_in_both = any(each.fails_in_both for each in (*repaired, *intact))
    return verdict, verdict.resolved or bool(forged) or late or fails_in_both


class _Comparison(NamedTuple):
    """What two variants show of one test.

    Attributes:
        test: its name.
        failed_in: the variants in which it must pass and does not.
        fails_by_itself_in: those of them in which no false test is the reason, as it is for a test that calls others.
        sign: the worst that it shows where it must fail.
        outcomes: what to show of it: its outcomes where it must pass.
    """

    test: str
    failed_in: tuple[int, ...]
    fails_by_itself_in: tuple[int, ...]
    sign: Sign
    outcomes: tuple[TestOutcome, ...]

    @property
    def fails_in_both(self) -> bool:
        """Whether it fails whatever it asks for, so that no false test can be the reason."""
        failed_in = self.fails_by_itself_in
        return len(failed_in) == 2 or (bool(failed_in) and self.sign is Sign.UNPROVEN)


def _compare(test: str, seen: Sequence[NamedOutcomes], variants: Variants, *, repaired: bool) -> _Comparison:
    """What the runs of both variants, in their order, show of a test; one that is not varied must pass in both."""
    definitions = [variants.definitions[name] for name in variants.tests.get(test, ())]
    must_pass = [number for number in (0, 1) if all(each.false_in != number for each in definitions)]
    failed_in = tuple(number for number in must_pass if _fails(test, seen[number], repaired, variants.strict))
    by_itself = tuple(
        number for number in failed_in if not _fail_at_false_lines(seen[number].of(test), number, variants)
    )
    signs: list[Sign] = []
    for each in definitions:
        found = seen[each.false_in].of(test)
        sign = sign_of(found, each, repaired=repaired)
        # A test that calls another one, false in the same variant, fails there before it comes to its own false lines.
        elsewhere = sign is Sign.UNPROVEN and _fail_at_false_lines(found, each.false_in, variants)
        signs.append(Sign.PROVEN if elsewhere else sign)
    shown = must_pass if not definitions else [number for number in must_pass if number not in failed_in]
    outcomes = tuple(outcome for number in shown for outcome in seen[number].of(test))
    return _Comparison(test, failed_in, by_itself, max(signs, default=Sign.PROVEN), outcomes)


def _fail_at_false_lines(outcomes: Sequence[TestOutcome], number: int, variants: Variants) -> bool:
    """Whether each failed at a line that is false in a variant, be it another test's: tests may call each other."""
    false = [each for each in variants.definitions.values() if each.false_in == number]
    return bool(outcomes) and all(
        outcome.failed and any(any_within(lines_in(outcome, each.path), each.fails_at) for each in false)
        for outcome in outcomes
    )


class Sign(IntEnum):
    """What a test shows where it must fail: it fails there; it fails elsewhere, is skipped or does not run; or it
    passes, or finds the wrong value equal.
    """

    PROVEN = 0
    UNPROVEN = 1
    FORGED = 2


def sign_of(outcomes: Sequence[TestOutcome], definition: TestDefinition, *, repaired: bool) -> Sign:
    """The worst sign of a definition's tests. Skipped tests that should only not break show nothing."""
    if not outcomes:
        return Sign.UNPROVEN
    if not repaired and all(outcome.outcome == "skipped" for outcome in outcomes):
        return Sign.PROVEN
    return max(_sign_of(outcome, definition) for outcome in outcomes)


def _sign_of(outcome: TestOutcome, definition: TestDefinition) -> Sign:
    if outcome.outcome == "passed":
        return Sign.FORGED
    if not outcome.failed:
        return Sign.UNPROVEN
    lines = lines_in(outcome, definition.path)
    if not lines:
        return Sign.PROVEN if outcome.outcome == "failed" else Sign.UNPROVEN
    if any_within(lines, definition.fails_at):
        return Sign.PROVEN
    return Sign.FORGED if any_within(lines, definition.asks_at) else Sign.UNPROVEN


def lines_in(outcome: TestOutcome, path: str) -> list[int]:
    """The lines of a file that an exception went through."""
    return [frame.line for frame in outcome.frames if frame.path == path]


def any_within(lines: Iterable[int], places: Iterable[tuple[int, int]]) -> bool:
    """Whether one of the lines is in one of the places, each a first and a last line."""
    places = tuple(places)
    return any(first <= line <= last for line in lines for first, last in places)


def _problems(run: TestRun, expected: Oracle) -> Iterable[str]:
    if not (expected.fail_to_pass or expected.pass_to_pass):
        yield NO_TESTS
    if run.result.timed_out:
        yield f"the tests run for more than {run.result.duration_s:.0f} s"
    elif not run.outcomes:
        yield f"no test reported an outcome (exit code {run.result.exit_code})"


def known_tests(before: TestRun, task_id: str) -> Oracle:
    """The tests that decide where no oracle names any: those of the original repository.

    What fails there is to pass, a file that cannot be loaded stands for all of its tests, and what passes is to stay.
    """
    failing = [outcome.id for outcome in before.outcomes if outcome.failed]
    passing = [outcome.id for outcome in before.outcomes if outcome.passed]
    return Oracle(task_id=task_id, gold_patch="", fail_to_pass=tuple(failing), pass_to_pass=tuple(passing))


def _fails(test: str, seen: NamedOutcomes, repaired: bool, strict: Collection[str]) -> bool:
    """Whether a test is not as it should be: passing, if the patch has to repair it, or else not broken."""
    if PROGRESS.fullmatch(test):
        return False
    outcomes = seen.of(test)
    good = {"passed"} if repaired else {"passed", "skipped"} if test in strict else {"passed", "skipped", "xfailed"}
    return not outcomes or any(outcome.outcome not in good for outcome in outcomes)


class NamedOutcomes:
    """What became of the tests of a run, by the names that published lists give them.

    A name is the test's id; or the id up to its first space; or one cut short in its parameters, which stands for all
    that begin with it; or one whose parameter is a path without its folders, or a number where the id has
    `MouseButton.LEFT` (as in matplotlib's before Python 3.11); or, as Django's runner prints it, `method (place)` or
    the first line of the docstring; or a name without a file (`test_a`, `TestB.test_c`), which stands for every test
    with that name; or a file, which stands for all of its tests.
    """

    def __init__(self, outcomes: Iterable[TestOutcome]) -> None:
        self._by_id: dict[str, TestOutcome] = {}
        self._by_name: dict[str, list[TestOutcome]] = {}
        for outcome in outcomes:
            self._by_id[outcome.id] = outcome
            for name in _other_names(outcome):
                self._by_name.setdefault(name, []).append(outcome)

    def of(self, test: str) -> list[TestOutcome]:
        """The outcomes that a name stands for; none for a test that did not run."""
        if test in self._by_id:
            return [self._by_id[test]]
        django = DJANGO.match(test)
        if django:
            method, place = django.groups()
            names = (f"{place}.{method}", place)
            found = [self._by_id[name] for name in names if name in self._by_id and name.endswith(method)]
            if found:
                return found
        if test.count("[") > test.count("]"):
            return _starting(self._by_id, test)
        if test in self._by_name:
            return self._by_name[test]
        return _starting(self._by_id, f"{test}::") if test.endswith(".py") else []


def _other_names(outcome: TestOutcome) -> set[str]:
    """The names by which published lists know a test, besides its id."""
    names = {outcome.id.split(" ")[0], outcome.title.strip()}
    if "::" in outcome.id:
        names.add(".".join(outcome.id.split("::")[1:]))
    option = OPTION.search(outcome.id)
    if option and option[2].startswith("/") and not option[2].startswith("//") and "*" not in option[2]:
        names.add(f"{option[1]}[/{option[2].rpartition('/')[2]}]")
    if "MouseButton." in outcome.id:
        names.add(outcome.id.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3"))
    return names - {"", outcome.id}


def _starting(outcomes: Mapping[str, TestOutcome], start: str) -> list[TestOutcome]:
    return [outcome for name, outcome in outcomes.items() if name.startswith(start)]
