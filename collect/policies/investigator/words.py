"""What the investigator says: which hypotheses are left, and what the next look will decide.

Every sentence is put together from what was seen; nothing else is named. Wordings vary with the seed.
"""

from __future__ import annotations

from collections.abc import Sequence

from gumshoe.collect.episode.tool_output import FailingTest
from gumshoe.collect.policies.investigator.belief import SuspectFunction, TriedChange
from gumshoe.collect.policies.investigator.latest import LatestFindings, in_words, line_and_change
from gumshoe.collect.policies.investigator.looks import Look
from gumshoe.records import ContextPack, DebugFrame
from gumshoe.text import plural

__all__ = ["Words"]


class Words(LatestFindings):
    """The sentences of one turn."""

    def before(self, look: Look) -> str:
        """What was learned last, what is left, and what this look will decide."""
        parts = [self.learned(), self.dropped(look.function), self._left(look.function), self.plan(look)]
        return " ".join(part for part in parts if part)

    def at_the_end(self, pack: ContextPack) -> str:
        """Before the report."""
        place = pack.locations[0]
        where = f"{place.symbol} ({place.path})" if place.symbol else f"{place.path}:{place.start}"
        left = [one for one in self.belief.ranked()[:2] if not one.holds(place.path, place.start)][:1]
        rest = ""
        if left and self.belief.functions[left[0]] >= 0.1:
            rest = self.pick(
                f"I cannot rule out {left[0].name}.",
                f"{left[0].name} stays possible.",
                f"What keeps me from being sure is {left[0].name}.",
            )
        said = self.pick(
            f"The evidence points to {where}, so I hand that over.",
            f"{where} explains the failure best; further looks would tell little more.",
            f"I report {where}.",
            f"Enough: {where} is where I would change the code.",
        )
        return " ".join(part for part in (self.learned(), said, rest) if part)

    def why(self, probability: float) -> str:
        """Why a place is in the report."""
        if probability >= 0.75:
            return self.pick("what was tried there decides it", "the failing tests hang on it")
        if probability >= 0.4:
            return self.pick("likelier than the rest, not proven", "the best explanation that is left")
        return self.pick("possible, not tested to the end", "cannot be ruled out")

    def hypothesis(self, where: str, line: str, trial: TriedChange | None) -> str:
        """What is wrong: the place, the line if one stands out, the change that showed it."""
        if not line:
            return self.pick(
                f"Something in {where} is probably wrong.",
                f"Failing tests run {where}; no single line stands out.",
            )
        if trial is None:
            code = in_words(line)
            return self.pick(
                f"{code} in {where} is the likeliest cause.",
                f"In {where} I suspect {code}.",
                f"The cause is most likely {code}, in {where}.",
            )
        after = {
            "fixes_all": "all failing tests pass and none breaks",
            "fixes_some": "some failing tests pass and none breaks",
        }.get(trial.effect, "failing tests pass, though others break")
        code, changed = line_and_change(line, trial.do)
        return self.pick(
            f"{code} in {where} is wrong: with {changed} in its place, {after}.",
            f"In {where} the line {code} is to blame; with {changed} instead, {after}.",
        )

    def hypothesis_of_frame(self, frame: DebugFrame) -> str:
        """What is wrong, if a traceback is all there is."""
        return f"It fails at {frame.path}:{frame.line}."

    def fails(self, failure: FailingTest) -> str:
        """The claim about a failing test."""
        test = failure.test.rpartition("::")[2]
        return self.pick(f"this is how {test} fails", f"{test} fails with this", f"what {test} reports")

    def effect(self, trial: TriedChange) -> str:
        """The claim about a change that was tried."""
        passing = plural(len(trial.passes), "failing test")
        if trial.effect == "trades":
            return f"with another line there {passing} {self._verb(trial.passes)}, though others break"
        return f"with this change {passing} {self._verb(trial.passes)} and no other breaks"

    def value(self, name: str, function: SuspectFunction) -> str:
        """The claim about a value."""
        return f"value of {name} when the debugger stopped in {function.name}"

    def suspicious(self, function: SuspectFunction) -> str:
        """The claim about a suspect."""
        return f"{function.name} is among the likeliest functions"

    def raised(self) -> str:
        """The claim about the last frame."""
        return "the exception was raised there"

    def _left(self, following: SuspectFunction | None) -> str:
        """The hypotheses that are left, and how the function that comes next ranks among them."""
        ranked = self.belief.ranked()
        if not ranked:
            return ""
        first, share = ranked[0], self.belief.functions[ranked[0]]
        if following is not None and following not in ranked[:3]:
            return self.pick(
                f"{first.name} scores highest, but {following.name} lies on the way to the failure, too.",
                f"On paper it is {first.name}; before I settle on it I want {following.name} checked.",
                f"{following.name} ranks below {first.name}, yet what goes wrong could start there.",
            )
        others = [function for function in ranked[1:3] if self.belief.functions[function] > share / 4]
        if not others:
            return self.pick(
                f"{first.name} is ahead of everything else.",
                f"Of what I have seen, {first.name} is the likeliest.",
                f"My one serious candidate is {first.name} in {first.path}.",
                f"It is {first.name}, or something that I have not seen yet.",
            )
        names = " and ".join(function.name for function in others)
        return self.pick(
            f"{first.name} leads, with {names} behind.",
            f"It could be {first.name}; {names} would explain it too.",
            f"Still open: {first.name}, {names}.",
            f"I lean to {first.name}, before {names}.",
            f"{first.name} looks worst, then {names}.",
        )

    def plan(self, look: Look) -> str:
        """What the next look will decide."""
        name = look.function.name if look.function else ""
        if look.kind == "eval":
            return self.pick(
                "First the tests: what fails, and how?",
                "I run the tests to see the failure with my own eyes.",
                "Which tests fail, and where do they stop?",
                "Running the tests tells me what has to be explained.",
                "Let me see the failure before I guess.",
            )
        if look.kind == "suspects":
            return self.pick(
                "Comparing what failing and passing tests run will narrow it down.",
                "Which functions do only the failing tests need?",
                "The coverage of failing against passing tests gives me the candidates.",
                "I want a list of candidates: what do the failing tests run that the others do not?",
            )
        if look.kind == "view":
            return self.pick(
                f"I read {name} to see which of its lines could do this.",
                f"What does {name} really do? Its code decides what to try.",
                f"Next the code of {name}, at {look.function.place if look.function else ''}.",
                f"Reading {name} is cheap and tells me what can be tested in it.",
                f"Let me look at {name} line by line.",
            )
        if look.kind == "trace":
            return self.pick(
                f"How do the calls of {name} in failing tests differ from those in passing ones?",
                f"I compare what {name} does in failing and in passing tests.",
                f"The calls of {name} will show whether it misbehaves or is only given something odd.",
            )
        if look.kind == "pdb" and look.statement is not None:
            return self.pick(
                f"Stopping at {look.statement.place} shows whether the values are wrong by then.",
                f"I stop at {look.statement.place}: are the values there what {name or 'the code'} expects?",
                f"The values at {look.statement.place} will tell whether the fault lies before it or behind it.",
            )
        return self._experiment(look, name)

    def _experiment(self, look: Look, name: str) -> str:
        lines = sorted({(one.path, one.line) for one in look.changes})
        if len(lines) == 1:
            path, line = lines[0]
            return self.pick(
                f"If {path}:{line} is the culprit, one of these variants should bring the tests through.",
                f"I vary {path}:{line} alone: does any version of it help?",
                f"Everything now hangs on {path}:{line}; I try it in other forms.",
            )
        where = f"of {name}" if name else "of the candidates"
        return self.pick(
            f"I change single lines {where} in memory: whichever makes failing tests pass is where to look.",
            f"Trying small changes to lines {where} will show which of them the failing tests hang on.",
            f"If one of the lines {where} is at fault, some variant of it should bring the tests through.",
            f"An experiment decides: lines {where}, each altered on its own.",
            f"Which lines {where} matter? I force branches and swap operators there and watch the failing tests.",
        )

    def _verb(self, tests: Sequence[str]) -> str:
        return "passes" if len(tests) == 1 else "pass"
