"""What the investigator says: which hypotheses are left, and what the next look will decide.

Every sentence is put together from what was seen; nothing else is named. Wordings vary with the seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from gumshoe.collect.evidence import FailingTest, failures
from gumshoe.collect.policies.investigator.belief import Belief, Function, Trial
from gumshoe.collect.policies.investigator.looks import Look
from gumshoe.collect.policies.investigator.statements import Statement
from gumshoe.collect.tool_output import ToolOutput
from gumshoe.records import ContextPack, DebugFrame
from gumshoe.tools.text import plural

__all__ = ["Words"]

CODE = 70
"""Characters of code that a sentence quotes."""


class Words:
    """The sentences of one turn.

    Args:
        rng: picks among wordings.
        belief: what is believed now.
        outputs: what was seen.
    """

    def __init__(self, rng: random.Random, belief: Belief, outputs: Sequence[ToolOutput]) -> None:
        self._rng = rng
        self._belief = belief
        self._outputs = outputs

    def before(self, look: Look) -> str:
        """What was learned last, what is left, and what this look will decide."""
        parts = [self._learned(), self._left(), self._plan(look)]
        return " ".join(part for part in parts if part)

    def at_the_end(self, pack: ContextPack) -> str:
        """Before the report."""
        place = pack.locations[0]
        where = f"{place.symbol} ({place.path})" if place.symbol else f"{place.path}:{place.start}"
        left = self._belief.ranked()[1:2]
        rest = ""
        if left and self._belief.functions[left[0]] >= 0.1:
            rest = self._pick(
                f"I cannot rule out {left[0].name}.",
                f"{left[0].name} stays possible.",
                f"What keeps me from being sure is {left[0].name}.",
            )
        said = self._pick(
            f"The evidence points to {where}, so I hand that over.",
            f"{where} explains the failure best; further looks would tell little more.",
            f"I report {where}.",
            f"Enough: {where} is where I would change the code.",
        )
        return " ".join(part for part in (self._learned(), said, rest) if part)

    def why(self, probability: float) -> str:
        """Why a place is in the report."""
        if probability >= 0.75:
            return self._pick("what was tried there decides it", "the failing tests hang on it")
        if probability >= 0.4:
            return self._pick("likelier than the rest, not proven", "the best explanation that is left")
        return self._pick("possible, not tested to the end", "cannot be ruled out")

    def hypothesis(self, function: Function | None, statement: Statement | None, trial: Trial | None) -> str:
        """What is wrong."""
        assert function is not None
        where = f"{function.name} ({function.place})"
        if statement is None:
            return self._pick(
                f"Something in {where} is wrong.",
                f"The failing tests depend on {where}; no single line stands out.",
            )
        code = _code(statement.code)
        if trial is None:
            return f"{code} in {where} is the likeliest cause."
        after = {
            "repairs": "all failing tests pass and none breaks",
            "cures": "some failing tests pass and none breaks",
        }.get(trial.effect, "failing tests pass, though others break")
        return self._pick(
            f"{code} in {where} is wrong: with {_code(trial.do)} in its place, {after}.",
            f"In {where} the line {code} is to blame; with {_code(trial.do)} instead, {after}.",
        )

    def hypothesis_of_frame(self, frame: DebugFrame) -> str:
        """What is wrong, where a traceback is all there is."""
        return f"It fails at {frame.path}:{frame.line}."

    def fails(self, failure: FailingTest) -> str:
        """The claim about a failing test."""
        test = failure.test.rpartition("::")[2]
        return self._pick(f"this is how {test} fails", f"{test} fails with this", f"what {test} reports")

    def effect(self, trial: Trial) -> str:
        """The claim about a change that was tried."""
        passing = plural(len(trial.passes), "failing test")
        if trial.effect == "mixed":
            return f"with another line there {passing} {self._verb(trial.passes)}, though others break"
        return f"with this change {passing} {self._verb(trial.passes)} and no other breaks"

    def value(self, name: str, function: Function) -> str:
        """The claim about a value."""
        return f"value of {name} when the debugger stopped in {function.name}"

    def suspicious(self, function: Function) -> str:
        """The claim about a suspect."""
        return f"failing tests run {function.name} more than passing ones"

    def raised(self) -> str:
        """The claim about the last frame."""
        return "the exception was raised there"

    def against(self, function: Function, there: Sequence[Trial]) -> str:
        """Why a suspect is no longer one."""
        useless = [one for one in there if one.effect in ("nothing", "mixed")]
        if there and all(one.effect == "unreached" for one in there):
            return "the lines changed there were never reached"
        if useless:
            return f"{plural(len(useless), 'change')} there did not bring the failing tests through"
        return self._pick(
            "passing tests run it much as failing ones do",
            "less suspicious than the places named, and nothing seen speaks for it",
        )

    def _learned(self) -> str:
        """What the last answer has shown."""
        if not self._outputs:
            return ""
        last = self._outputs[-1]
        if last.observation.failure is not None:
            return self._pick("That gave no answer.", "No luck with that.")
        if last.tool == "eval":
            return self._of_tests(last)
        if last.tool == "whatif":
            return self._of_trials([trial for trial in self._belief.trials if trial.step == last.step])
        if last.tool == "pdb":
            return self._of_values(last)
        return ""

    def _of_tests(self, last: ToolOutput) -> str:
        failed = [failure for failure in failures([last]) if failure.message]
        if not failed:
            return ""
        test = failed[0].test.rpartition("::")[2]
        message = failed[0].message[:CODE]
        more = f", and {len(failed) - 1} more fail" if len(failed) > 1 and str(len(failed) - 1) in last.text else ""
        return self._pick(
            f"{test} stops with: {message}{more}.",
            f"So {test} fails ({message}){more}.",
            f"The failure to explain is {test}: {message}{more}.",
            f"{message}: that is what {test} runs into{more}.",
        )

    def _of_trials(self, tried: Sequence[Trial]) -> str:
        good = [one for one in tried if one.effect in ("repairs", "cures")]
        if good:
            one = good[0]
            done = _code(one.do)
            return (
                self._pick(
                    f"With {done} at {one.path}:{one.line} the failing tests come through.",
                    f"That is telling: {done} at {one.path}:{one.line} makes failing tests pass and breaks none.",
                    f"Changing {one.path}:{one.line} to {done} is enough to turn red into green.",
                )
                if one.effect == "repairs"
                else self._pick(
                    f"{done} at {one.path}:{one.line} helps some of the failing tests.",
                    f"Part of the failure goes away with {done} at {one.path}:{one.line}.",
                )
            )
        mixed = [one for one in tried if one.effect == "mixed"]
        if mixed:
            return self._pick(
                f"{mixed[0].path}:{mixed[0].line} has a hand in it, but what I did there breaks other tests.",
                f"At {mixed[0].path}:{mixed[0].line} a change helps and harms; not yet the cause.",
            )
        if tried and all(one.effect == "unreached" for one in tried):
            return self._pick("None of those lines is reached.", "The tests never come by there.")
        return self._pick(
            "None of these changes helps.",
            "No variant makes a difference for the failing tests.",
            "That experiment came back empty.",
            "Nothing changes the outcome there.",
        )

    def _of_values(self, last: ToolOutput) -> str:
        values = [pair for result in last.data.get("results", ()) for pair in result.get("values", ())]
        short = [
            (name, value) for name, value in values if len(value) <= 40 and "\n" not in value and name.isidentifier()
        ]
        if not short:
            return ""
        name, value = self._rng.choice(short)
        return self._pick(
            f"There {name} is {value}.", f"At that point I see {name} = {value}.", f"So {name} = {value}."
        )

    def _left(self) -> str:
        """The hypotheses that are left."""
        ranked = self._belief.ranked()
        if not ranked:
            return ""
        first, share = ranked[0], self._belief.functions[ranked[0]]
        others = [function for function in ranked[1:3] if self._belief.functions[function] > share / 4]
        if not others:
            return self._pick(
                f"{first.name} is far ahead of everything else.",
                f"Hardly anything but {first.name} is left.",
                f"My one serious candidate is {first.name} in {first.path}.",
                f"By now it is {first.name} or something not seen yet.",
            )
        names = " and ".join(function.name for function in others)
        return self._pick(
            f"{first.name} leads, with {names} behind.",
            f"It could be {first.name}; {names} would explain it too.",
            f"Still open: {first.name}, {names}.",
            f"Between {first.name} and {names} I lean to the former.",
            f"{first.name} looks worst, then {names}.",
        )

    def _plan(self, look: Look) -> str:
        """What the next look will decide."""
        name = look.function.name if look.function else ""
        if look.kind == "eval":
            return self._pick(
                "First the tests: what fails, and how?",
                "I run the tests to see the failure with my own eyes.",
                "Which tests fail, and where do they stop?",
                "Running the tests tells me what has to be explained.",
                "Let me see the failure before I guess.",
            )
        if look.kind == "suspects":
            return self._pick(
                "Comparing what failing and passing tests run will narrow it down.",
                "Which functions do only the failing tests need?",
                "The coverage of failing against passing tests gives me the candidates.",
                "I want a list of candidates: what do the failing tests run that the others do not?",
            )
        if look.kind == "view":
            return self._pick(
                f"I read {name} to see which of its lines could do this.",
                f"What does {name} really do? Its code decides what to try.",
                f"Next the code of {name}, at {look.function.place if look.function else ''}.",
                f"Reading {name} is cheap and tells me what can be tested in it.",
                f"Let me look at {name} line by line.",
            )
        if look.kind == "pdb" and look.statement is not None:
            return self._pick(
                f"Stopping at {look.statement.place} shows whether the values are wrong by then.",
                f"I stop at {look.statement.place}: are the values there what {name} expects?",
                f"The values at {look.statement.place} will tell whether the fault lies before it or behind it.",
            )
        return self._experiment(look, name)

    def _experiment(self, look: Look, name: str) -> str:
        lines = sorted({(one.path, one.line) for one in look.changes})
        if len(lines) == 1:
            path, line = lines[0]
            return self._pick(
                f"If {path}:{line} is the culprit, one of these variants should bring the tests through.",
                f"I vary {path}:{line} alone: does any version of it help?",
                f"Everything now hangs on {path}:{line}; I try it in other forms.",
            )
        where = f"of {name}" if name else "of the candidates"
        return self._pick(
            f"I change single lines {where} in memory: whichever makes failing tests pass is where to look.",
            f"Trying small changes to lines {where} will show which of them the failing tests hang on.",
            f"If one of the lines {where} is at fault, some variant of it should bring the tests through.",
            f"An experiment decides: lines {where}, each altered on its own.",
            f"Which lines {where} matter? I force branches and swap operators there and watch the failing tests.",
        )

    def _verb(self, tests: Sequence[str]) -> str:
        return "passes" if len(tests) == 1 else "pass"

    def _pick(self, *wordings: str) -> str:
        return self._rng.choice(wordings)


def _code(text: str) -> str:
    """Code in a sentence; of long code the beginning, word for word as it was shown."""
    line = " ".join(text.split())
    return f"`{line}`" if len(line) <= CODE else f"`{line[:CODE].rstrip()}` (and so on)"
