"""Which tests can be made to fail on a repaired repository, and with which of their comparisons."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gumshoe.env.verifier.judge import NamedOutcomes, Sign, any_within, lines_in, sign_of
from gumshoe.env.verifier.repository import Applied, TestDefinition, Variants
from gumshoe.records import TestOutcome, TestRun

__all__ = ["SAMPLE", "Proof", "prove"]

ROUNDS = 4
SAMPLE = 24
"""How many tests that should not break are made to fail in one of the variants."""


@dataclass(frozen=True)
class Proof:
    """What is known of a repaired repository.

    Attributes:
        run: a run of its original tests.
        applied: what the gold patch did besides.
        tests: the definitions of each test that decides.
        falsifiable: the definitions that fail where they are made false, and pass otherwise, each with the comparisons
            that can be changed.
    """

    run: TestRun
    applied: Applied
    tests: Mapping[str, tuple[str, ...]]
    falsifiable: Mapping[str, tuple[int, ...]]

    def sample(self, fail_to_pass: Sequence[str], pass_to_pass: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """What to keep with a task: all of the first tests, and some of the others."""
        chosen = random.SystemRandom().sample(pass_to_pass, min(SAMPLE, len(pass_to_pass)))
        names = {name for test in (*fail_to_pass, *chosen) for name in self.tests.get(test, ())}
        return {name: self.falsifiable[name] for name in sorted(names) if name in self.falsifiable}


def prove(
    run: TestRun,
    applied: Applied,
    make: Callable[[Mapping[str, Sequence[int]] | None], Variants],
    run_all: Callable[[Sequence[Mapping[str, bytes]]], Sequence[TestRun]],
) -> Proof:
    """Tries everything at once, and leaves out what does not fail, until the rest does.

    Args:
        run: a run of the original tests.
        applied: what the gold patch did besides.
        make: makes variants of the tests: of all, or of these comparisons in these definitions.
        run_all: runs all tests with each of these contents of test files.
    """
    variants = make(None)
    tests = {test: names for test, names in variants.tests.items() if names}
    of_definition: dict[str, list[str]] = {}
    for test, names in tests.items():
        for name in names:
            of_definition.setdefault(name, []).append(test)
    passing = {one.id for one in run.outcomes if one.outcome == "passed"}
    left: dict[str, tuple[int, ...]] = {}
    for number in range(ROUNDS):
        files = [variants.files(each) for each in ((0, 1) if number == 0 else (1,))]
        ran = run_all(files)
        if number == 0:
            kept = {one.id for one in ran[0].outcomes if one.outcome == "passed"}
            spoiled = passing - kept
            names = NamedOutcomes(run.outcomes)
            left = {
                name: variants.definitions[name].comparisons
                for name in of_definition
                if not any(one.id in spoiled for test in of_definition[name] for one in names.of(test))
            }
        seen = NamedOutcomes(ran[-1].outcomes)
        remaining: dict[str, tuple[int, ...]] = {}
        for name in left:
            outcomes = [one for test in of_definition[name] for one in seen.of(test) if one.id in passing]
            numbers = _proven(outcomes, variants.definitions[name])
            if numbers is not None:
                remaining[name] = numbers
        if remaining == left or not remaining:
            return Proof(run, applied, tests, remaining)
        left = remaining
        variants = make(left)
    return Proof(run, applied, tests, dict.fromkeys(left, ()))


def _proven(outcomes: Sequence[TestOutcome], definition: TestDefinition) -> tuple[int, ...] | None:
    """The comparisons that were unequal to another value; None where the tests do not fail as they must."""
    if outcomes and sign_of(outcomes, definition, repaired=True) is Sign.PROVEN:
        return definition.comparisons
    lines = [line for one in outcomes if one.outcome in ("failed", "error") for line in lines_in(one, definition.path)]
    good = tuple(
        number
        for number, place in zip(definition.comparisons, definition.asks_at, strict=True)
        if not any_within(lines, [place])
    )
    return good if len(good) < len(definition.comparisons) and _all_fail(outcomes) else None


def _all_fail(outcomes: Iterable[TestOutcome]) -> bool:
    return all(one.outcome in ("failed", "error") for one in outcomes)
