"""What the investigator says: what it has just seen, which hypotheses are left, what the next look will decide.

Every sentence is put together from what was seen; nothing else is named. Wordings vary with the seed.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.collect.episode.tool_output import FailingTest, ToolOutput, failures
from gumshoe.collect.policies.investigator.belief import Belief, SuspectFunction, TriedChange
from gumshoe.collect.policies.investigator.looks import Look
from gumshoe.records import ContextPack
from gumshoe.text import plural
from gumshoe.tools.runs.traced_calls import is_hidden

CODE = 70
"""The most characters of code that a sentence quotes."""
AND_SO_ON = " (and so on)"


class Words:
    """The sentences of one turn: `rng` picks among wordings of what is believed now and was seen."""

    def __init__(self, rng: random.Random, belief: Belief, outputs: Sequence[ToolOutput]) -> None:
        self.rng = rng
        self.belief = belief
        self.outputs = outputs

    def pick(self, *wordings: str) -> str:
        """One of several wordings."""
        return self.rng.choice(wordings)

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

    def why(self, probability: float, *, repaired: bool) -> str:
        """Why a place is in the report; `repaired`: a change there makes all failing tests pass and breaks none."""
        if repaired and probability >= 0.75:
            return self.pick("a change there makes the failing tests pass", "the failing tests hang on it")
        if probability >= 0.4:
            return self.pick("likelier than the rest, not proven", "the best explanation that is left")
        return self.pick("possible, not tested to the end", "cannot be ruled out")

    def hypothesis(self, where: str, line: str, trial: TriedChange | None, *, goes_on: bool = False) -> str:
        """What is wrong: the place, the line if one stands out, which may go on below it, the change that showed it."""
        if not line:
            return self.pick(
                f"Something in {where} is probably wrong.",
                f"Failing tests run {where}; no single line stands out.",
            )
        code, changed = line_and_change(line, trial.do if trial else "")
        if goes_on and not code.endswith((AND_SO_ON, "...")):
            code += AND_SO_ON
        if trial is None:
            return self.pick(
                f"{code} in {where} is the likeliest cause.",
                f"In {where} I suspect {code}.",
                f"The cause is most likely {code}, in {where}.",
            )
        after = {
            "fixes_all": "all failing tests pass and none breaks",
            "fixes_some": "some failing tests pass and none breaks",
        }.get(trial.effect, "failing tests pass, though others break")
        return self.pick(
            f"{code} in {where} is probably wrong: with {changed} in its place, {after}.",
            f"In {where} the line {code} is probably to blame; with {changed} instead, {after}.",
        )

    def fails(self, failure: FailingTest) -> str:
        """The claim about a failing test."""
        test = failure.test.rpartition("::")[2]
        return self.pick(f"this is how {test} fails", f"{test} fails with this", f"what {test} reports")

    def effect(self, trial: TriedChange) -> str:
        """The claim about a change that was tried."""
        count = len(trial.passes)
        passing = f"{plural(count, 'failing test')} {'passes' if count == 1 else 'pass'}"
        if trial.effect == "trades":
            return f"with another line there {passing}, though others break"
        return f"with this change {passing} and no other breaks"

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

    def learned(self) -> str:
        """What the last answer has shown."""
        if not self.outputs:
            return ""
        last = self.outputs[-1]
        if last.observation.failure is not None:
            return self.pick("That gave no answer.", "No luck with that.")
        if last.tool == "eval":
            return self._of_tests(last)
        if last.tool == "whatif":
            return self._of_trials([trial for trial in self.belief.trials if trial.step == last.step])
        if last.tool == "pdb":
            return self._of_values(last)
        if last.tool == "trace":
            return self._of_calls(last)
        return ""

    def dropped(self, following: SuspectFunction | None) -> str:
        """Why the function that was read last is dropped for another."""
        last = self.outputs[-1] if self.outputs else None
        if last is None or last.tool != "view" or "path" not in last.data or following is None:
            return ""
        left = self.belief.function_of(last.data["path"], last.data["start"])
        # One that is named as a candidate in the same turn is not set aside.
        if left is None or left == following or left in self.belief.ranked()[:3]:
            return ""
        tried = [one for one in self.belief.trials if left.holds(one.path, one.line)]
        why = self.against(tried)
        wordings = [f"I set {left.name} aside: {why}.", f"{left.name} is not it, I think: {why}.", ""]
        if tried:
            wordings.append(f"Nothing that I tried in {left.name} accounts for this; {why}.")
        return self.pick(*wordings)

    def _of_tests(self, last: ToolOutput) -> str:
        failed = [failure for failure in failures([last]) if failure.message]
        if not failed:
            return ""
        test = failed[0].test.rpartition("::")[2]
        whole = failed[0].message
        message = _beginning(whole)
        message += " ..." if message != whole else ""
        others = str(len(failed) - 1)
        more = f", and {others} more fail" if len(failed) > 1 and others in re.findall(r"[\w.]+", last.text) else ""
        return self.pick(
            f"{test} stops with: {message}{more}.",
            f"So {test} fails ({message}){more}.",
            f"The failure to explain is {test}: {message}{more}.",
            f"{message}: that is what {test} runs into{more}.",
        )

    def _of_trials(self, tried: Sequence[TriedChange]) -> str:
        good = [one for one in tried if one.effect in ("fixes_all", "fixes_some")]
        if good:
            one = good[0]
            done = in_words(_new_code(one.do) or one.do)
            if one.effect == "fixes_all":
                return self.pick(
                    f"With {done} at {one.path}:{one.line} the failing tests come through.",
                    f"That is telling: {done} at {one.path}:{one.line} makes failing tests pass and breaks none.",
                    f"Changing {one.path}:{one.line} to {done} is enough to turn red into green.",
                )
            return self.pick(
                f"{done} at {one.path}:{one.line} helps some of the failing tests.",
                f"Part of the failure goes away with {done} at {one.path}:{one.line}.",
            )
        trades = [one for one in tried if one.effect == "trades"]
        if trades:
            return self.pick(
                f"A change at {trades[0].path}:{trades[0].line} lets failing tests pass, though others break.",
                f"At {trades[0].path}:{trades[0].line} a change helps some tests and harms others.",
            )
        if tried and all(one.effect == "unreached" for one in tried):
            return self.pick("None of those lines is reached.", "The tests never come by there.")
        return self.pick(
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
        name, value = self.rng.choice(short)
        return self.pick(f"There {name} is {value}.", f"At that point I see {name} = {value}.", f"So {name} = {value}.")

    def _of_calls(self, last: ToolOutput) -> str:
        name = last.data["function"]["name"]
        calls = last.data["failing"]
        if not last.data["failing_calls"]:
            return self.pick(f"No failing test calls {name}.", f"{name} is not called where it fails.")
        if not calls:  # there were too many to keep any
            return ""
        if all(call["like_passing"] for call in calls):
            return self.pick(
                f"Whatever the failing tests ask of {name}, passing ones ask too, with the same result.",
                f"{name} does in the failing tests what it does elsewhere.",
            )
        compared = [call["comparison"] for call in calls if call["comparison"]]
        if any(not one["arguments"] and one["result"] for one in compared):
            return self.pick(
                f"Given equal arguments, {name} comes to something else in the failing tests.",
                f"The same arguments, another result: {name} behaves differently where it fails.",
            )
        if not any(_differs(one) for one in compared):
            return ""
        return self.pick(
            f"Failing tests call {name} in ways that no passing one does.",
            f"There are calls of {name} in failing tests that no passing one makes.",
        )

    def against(self, there: Sequence[TriedChange]) -> str:
        """Why a suspect is no longer one, by the changes that were tried there."""
        useless = [one for one in there if one.effect == "none"]
        if any(one.effect == "trades" for one in there):
            return self.pick("what helps there breaks other tests", "a change there helps some tests and harms others")
        if any(one.effect == "fixes_all" for one in there):
            return "a change there helps, too, but less speaks for it otherwise"
        if any(one.passes for one in there):
            return "a change there helps only some of the failing tests"
        if there and all(one.effect == "unreached" for one in there):
            return "the lines changed there were never reached"
        if useless:
            return self.pick(
                "nothing that was tried there brought the failing tests through",
                "the failing tests fail with other code there, too",
            )
        return self.pick(
            "beyond its score, nothing seen speaks for it",
            "nothing seen so far speaks for it but the tests that run it",
        )


def _differs(comparison: Mapping[str, Any]) -> bool:
    """Whether a failing call is known to differ from the nearest passing one: of hidden values, nobody knows."""
    shown = any(not is_hidden(one) and not is_hidden(other) for one, other in comparison["arguments"].values())
    return shown or any(comparison[part] for part in ("value", "branch", "result"))


def line_and_change(line: str, do: str) -> tuple[str, str]:
    """A line and what `whatif` puts in its place, in a sentence; long code is cut around the first difference."""
    code = _new_code(do)
    if code is None:
        return in_words(line), in_words(do)
    before, after = " ".join(line.split()), " ".join(code.split())
    head = before.partition(" ")[0] + " " if do.startswith("condition ") else ""
    pairs = zip(before.removeprefix(head), after, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    if same < CODE // 2:
        return in_words(before), in_words(after)
    lead = after[: same - CODE // 3]
    start = len(lead) - len(re.findall(r"\w*$", lead)[0])
    return _excerpt(before, len(head) + start), _excerpt(after, start)


def _new_code(do: str) -> str | None:
    """The code that a change puts in place of a line or a condition; None if it does something else."""
    kind, _, code = do.partition(" ")
    return code if code and kind in ("replace", "condition") else None


def _excerpt(line: str, start: int) -> str:
    """Code in a sentence from a place on, or the whole of it if it is short."""
    if start == 0 or len(line) <= CODE:
        return in_words(line)
    piece = _beginning(line[start:].lstrip())
    return f"... `{piece}`" if line.endswith(piece) else f"... `{piece}` ..."


def in_words(text: str) -> str:
    """Code in a sentence; for long code, its beginning, word for word as it was shown."""
    line = " ".join(text.split())
    beginning = _beginning(line)
    return f"`{beginning}`" if beginning == line else f"`{beginning}`{AND_SO_ON}"


def _beginning(line: str) -> str:
    """At most CODE characters of a line, the last word whole: half a name is the name of nothing."""
    if len(line) <= CODE:
        return line
    whole = re.sub(r"\w+$", "", line[:CODE]) if re.match(r"\w\w", line[CODE - 1 : CODE + 1]) else line[:CODE]
    return (whole or line[:CODE]).rstrip()
