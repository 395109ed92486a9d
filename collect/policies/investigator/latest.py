"""What the investigator says about what it has just seen."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.collect.episode.tool_output import ToolOutput, failures
from gumshoe.collect.policies.investigator.belief import Belief, SuspectFunction, TriedChange
from gumshoe.tools.runs.traced_calls import is_hidden

__all__ = ["CODE", "LatestFindings", "changed_code", "in_words", "line_and_change"]

CODE = 70
"""The most characters of code that a sentence quotes."""


class LatestFindings:
    """Sentences about the last answer.

    Args:
        rng: picks among wordings.
        belief: what is believed now.
        outputs: what was seen.
    """

    def __init__(self, rng: random.Random, belief: Belief, outputs: Sequence[ToolOutput]) -> None:
        self.rng = rng
        self.belief = belief
        self.outputs = outputs

    def pick(self, *wordings: str) -> str:
        """One of several wordings."""
        return self.rng.choice(wordings)

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
        why = self.against(left, tried)
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
            done = changed_code(one.do)
            return (
                self.pick(
                    f"With {done} at {one.path}:{one.line} the failing tests come through.",
                    f"That is telling: {done} at {one.path}:{one.line} makes failing tests pass and breaks none.",
                    f"Changing {one.path}:{one.line} to {done} is enough to turn red into green.",
                )
                if one.effect == "fixes_all"
                else self.pick(
                    f"{done} at {one.path}:{one.line} helps some of the failing tests.",
                    f"Part of the failure goes away with {done} at {one.path}:{one.line}.",
                )
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

    def against(self, function: SuspectFunction, there: Sequence[TriedChange]) -> str:
        """Why a suspect is no longer one."""
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


def changed_code(do: str) -> str:
    """What `whatif` puts in place of a line or a condition, in a sentence: code, or what it does."""
    return in_words(_new_code(do) or do)


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
    return f"`{beginning}`" if beginning == line else f"`{beginning}` (and so on)"


def _beginning(line: str) -> str:
    """At most CODE characters of a line, the last word whole: half a name is the name of nothing."""
    if len(line) <= CODE:
        return line
    whole = re.sub(r"\w+$", "", line[:CODE]) if re.match(r"\w\w", line[CODE - 1 : CODE + 1]) else line[:CODE]
    return (whole or line[:CODE]).rstrip()
