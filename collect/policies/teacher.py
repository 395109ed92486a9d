"""The scripted teacher: it knows the answer, but uses it only to choose among looks that anyone might take next.

It makes its turns as the investigator does, from a belief and from what was seen. The answer decides which of several
sensible looks comes next: a place is visited only once an observation has named it. Now and then it takes a wrong turn,
and drops it with the reason. When it has read the lines that matter and looked at them at run time, it reports, as a
seeker; as a debug agent, it makes exactly the gold change, runs the tests again and submits. Only the new code in its
edits is said without having been seen. If no look leads to the lines that matter, it hands over what it believes, or
gives up.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping

from gumshoe.collect.episode.tool_output import failures, seen_code, stop_at
from gumshoe.collect.packs import build_pack
from gumshoe.collect.policies.gold import read_gold
from gumshoe.collect.policies.investigator.belief import Belief, SuspectFunction, TriedChange, form_belief
from gumshoe.collect.policies.investigator.looks import Look, looks, window_of
from gumshoe.collect.policies.investigator.policy import Conclusion, best_trial, pack_of, ruled_out
from gumshoe.collect.policies.investigator.words import Words
from gumshoe.collect.policies.strategy import Situation, Turn
from gumshoe.errors import PolicyError, ScriptExhausted
from gumshoe.records import ContextPack, Decision, Oracle, Task
from gumshoe.text import plural
from gumshoe.tools.code.functions import region_of
from gumshoe.tools.code.small_changes import changes_at
from gumshoe.tools.code.statements import Statement
from gumshoe.tools.whatif import MOST_VARIANTS

AROUND = 20
"""Lines that it reads before and after one that a search has found."""
PAGE = 200
OUTLINE = r"def (?!test_)"
"""Finds where functions begin, tests left out."""
MOST_WRONG_TURNS = 3
MOST_STOPS = 4
TRIES = 0.6
"""How often it tries changes at the place in memory, if it may."""


class Teacher:
    """The strategy of one episode.

    Args:
        task: what is worked on.
        oracle: its answer.
        explore: probability of a look that is not needed, at each turn, 0 to 1.
        whole_functions: report the functions that hold the lines that matter, not these lines alone.

    Raises TaskError for a gold patch that edits cannot make.
    """

    kind = "teacher"
    tools = frozenset[str]()

    def __init__(self, task: Task, oracle: Oracle, *, explore: float = 0.25, whole_functions: bool = False) -> None:
        self._task = task
        self._gold = read_gold(oracle)
        self._explore = explore
        self._whole_functions = whole_functions

    def choose(self, situation: Situation) -> Turn:
        """The next turn, from what was seen so far.

        Raises:
            ScriptExhausted: the episode goes on after the teacher's last turn.
            PolicyError: the agent lacks a tool that the teacher needs.
        """
        if not {"report", "rewrite"} & situation.offered:
            raise PolicyError("the teacher needs the tool rewrite, or report, to end an episode")
        seen = _Seen(situation)
        if seen.is_over():
            raise ScriptExhausted(f"the teacher has finished {self._task.id} but another turn was requested")
        if "rewrite" in seen.called:
            return self._repair(seen)
        look = self._look(seen)
        if look is not None:
            return Turn(Decision.SEEK, self._sure(seen), seen.words.before(look), look.kind, look.arguments)
        if "report" in seen.offered:
            return self._hand_over(seen)
        if self._missing(seen):
            return Turn(Decision.SUBMIT, 0.1, seen.words.give_up(), "submit")
        return self._repair(seen)

    def _look(self, seen: _Seen) -> Look | None:
        """The next look; None if everything that matters has been seen, or nothing leads there."""
        found = [look for look in looks(seen.belief, seen.outputs, seen.offered) if look.bits > 0]
        opening = [look for look in found if look.kind in ("eval", "suspects")]
        if not seen.outputs and "listdir" in seen.offered and seen.rng.random() < self._explore:
            return Look("listdir", 0.0)
        if opening:
            return seen.rng.choice(opening) if self._explore else min(opening, key=lambda look: look.kind)
        wrong = [look for look in found if look.function is not None and not self._holds_gold(look.function)]
        if wrong and self._wrong_turns(seen) < MOST_WRONG_TURNS and seen.rng.random() < self._explore:
            return wrong[0]
        missing = self._missing(seen)
        if missing and "view" in seen.offered:
            return self._towards(*missing[0], seen)
        return None if missing else self._at_the_place(seen)

    def _missing(self, seen: _Seen) -> list[tuple[str, int]]:
        """The first line in each file that matters and has not been seen yet."""
        unseen = {path: numbers - seen.code.get(path, {}).keys() for path, numbers in self._gold.lines.items()}
        return [(path, min(numbers)) for path, numbers in unseen.items() if numbers]

    def _towards(self, path: str, line: int, seen: _Seen) -> Look | None:
        """A look at a line if something seen leads there, or else a search; None at a dead end."""
        around = seen.belief.function_of(path, line)
        if around is not None:
            start, end = window_of(around, line)
            return Look("view", 0.0, around, path=path, start=seen.unread(path, start, line), end=end)
        found = seen.matches.get(path, {})
        if line in found or any(text.lstrip().startswith(("def ", "async def ")) for text in found.values()):
            start, end = _window(found, line)
            return Look("view", 0.0, path=path, start=seen.unread(path, start, line), end=end)
        pattern = self._searched(path, line, seen)
        if pattern and "grep" in seen.offered:
            return Look("grep", 0.0, text=pattern)
        if path in seen.situation.shown:
            page = seen.unread(path, 1, line)
            return Look("view", 0.0, path=path, start=page, end=page + PAGE - 1)
        return Look("listdir", 0.0) if "listdir" in seen.offered and "listdir" not in seen.called else None

    def _searched(self, path: str, line: int, seen: _Seen) -> str | None:
        """What to search for: a name seen before that the line holds, else all functions; None once both were tried."""
        words = set(re.findall(r"\w+", seen.situation.shown))
        names = [name for name in names_in(self._gold.texts.get(path, {}).get(line, "")) if name in words]
        tried = {output.data.get("pattern") for output in seen.outputs if output.tool == "grep"}
        count = sum(output.tool == "grep" for output in seen.outputs)
        patterns = [*sorted(names, key=len, reverse=True)[:1], OUTLINE]
        return next((pattern for pattern in patterns[count:] if pattern not in tried), None)

    def _at_the_place(self, seen: _Seen) -> Look | None:
        """A look at run time at what was read: values, or changes in memory."""
        for path, line in self._gold.places[:2]:
            around, function = region_of(seen.code.get(path, {}), line), seen.belief.function_of(path, line)
            # The region of a function that was read in part ends where reading did.
            inside = range(around.start, max(around.end, function.end if function else 0) + 1)
            stopped = any(stop_at(output, path, inside) for output in seen.outputs) or seen.stops_at(path, inside)
            if "pdb" in seen.offered and not stopped and around.symbol and seen.called.count("pdb") < MOST_STOPS:
                return Look("pdb", 0.0, function, self._statement(path, around.start, seen))
        path, line = next(iter(self._gold.places), ("", 0))
        statement = self._statement(path, line, seen) if path else None
        tried = any(one.path == path for one in seen.belief.trials)
        changes = changes_at(statement)[:MOST_VARIANTS] if statement is not None and not tried else []
        if "whatif" in seen.offered and "eval" in seen.called and changes and seen.rng.random() < TRIES:
            return Look("whatif", 0.0, seen.belief.function_of(path, line), changes=tuple(changes))
        return None

    def _statement(self, path: str, line: int, seen: _Seen) -> Statement:
        """The statement on a line that was read."""
        known = [one for one in seen.belief.statements if one.path == path and one.line <= line <= one.end]
        return known[0] if known else Statement(path, line, line, seen.code.get(path, {}).get(line, "").strip())

    def _hand_over(self, seen: _Seen) -> Turn:
        pack = self._pack(seen) or pack_of(seen.belief, seen.outputs, seen.words)
        if pack is None:
            return Turn(Decision.REPORT, 0.0, seen.words.give_up())
        return seen.situation.report(pack, self._sure(seen), seen.words.at_the_end(pack))

    def _pack(self, seen: _Seen) -> ContextPack | None:
        """The report on the lines that matter; None if none of them was read."""
        path, line = next(iter(self._gold.places), ("", 0))
        code = seen.code.get(path, {})
        if line not in code:
            return None
        function = seen.belief.function_of(path, line)
        place = Conclusion(function, self._statement(path, line, seen), 0.0)
        symbol = region_of(code, line).symbol
        where = f"{symbol} ({path}:{line})" if symbol else f"{path}:{line}"
        why = seen.words.conclusion(where, code[line], best_trial(seen.belief, place))
        pack = build_pack(seen.outputs, self._gold.cause, why, whole_functions=self._whole_functions)
        if pack is None:
            return None
        named = [one for one in seen.belief.functions if self._holds_gold(one) or not seen.belief.is_viewed(one)]
        return pack.model_copy(update={"ruled_out": tuple(ruled_out(seen.belief, named, seen.words))})

    def _repair(self, seen: _Seen) -> Turn:
        done = sum(output.tool == "rewrite" for output in seen.outputs)
        if done < len(self._gold.changes):
            change = self._gold.changes[done]
            code = seen.code.get(change.path, {})
            symbol = region_of(code, change.start or 1).symbol if change.start in code else None
            where = f"{symbol} in {change.path}" if symbol else change.path
            pack = self._pack(seen) if done == 0 else None
            why = seen.words.correction(where) if pack is None else pack.hypothesis
            return Turn(Decision.EDIT, self._sure(seen), why, "rewrite", change.arguments)
        if seen.called[-1] != "eval":
            return Turn(Decision.VERIFY, 0.9, seen.words.verify(), "eval")
        left = len(failures(seen.outputs[-1:]))
        return Turn(Decision.SUBMIT, 0.5 if left else 1.0, seen.words.submit(left), "submit")

    def _sure(self, seen: _Seen) -> float | None:
        """How likely what was seen makes the functions that matter; None if there is no spectrum."""
        shares = [share for one, share in seen.belief.functions.items() if self._holds_gold(one)]
        return sum(shares) if seen.belief.functions else None

    def _wrong_turns(self, seen: _Seen) -> int:
        read = [one for one in seen.belief.functions if seen.belief.is_viewed(one)]
        return sum(not self._holds_gold(one) for one in read)

    def _holds_gold(self, function: SuspectFunction) -> bool:
        return any(function.holds(path, line) for path, lines in self._gold.cause.items() for line in lines)


class _Seen:
    """What was seen, and what follows from it."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.outputs = situation.outputs
        self.offered = situation.offered
        self.rng = situation.rng
        self.called = [output.tool for output in self.outputs]
        self.belief: Belief = form_belief(self.outputs)
        self.code = seen_code(self.outputs)
        self.words = TeacherWords(self.rng, self.belief, self.outputs)
        self.matches: dict[str, dict[int, str]] = {}
        for output in self.outputs:
            for match in output.data.get("matches", ()) if output.tool == "grep" else ():
                self.matches.setdefault(match["path"], {})[match["line"]] = match["text"]

    def unread(self, path: str, start: int, line: int) -> int:
        """The first line from `start` to `line` that no view has shown; a long view may have ended before `line`."""
        read = self.code.get(path, {})
        return next((number for number in range(start, line) if number not in read), line)

    def is_over(self) -> bool:
        """Whether the episode has come to its end; a report may be sent back."""
        ended = [output for output in self.outputs if output.tool in ("report", "submit")]
        return any(output.observation.failure is None for output in ended) or len(ended) > 1

    def stops_at(self, path: str, lines: range) -> bool:
        """Whether there is a breakpoint on one of the lines."""
        points = [
            point for output in self.outputs for point in output.data.get("breakpoints", ()) if output.tool == "pdb"
        ]
        return any(point["path"] == path and point["line"] in lines for point in points)


class TeacherWords(Words):
    """What the teacher says in addition. Only it lists folders, searches, and reads code of no function."""

    def plan(self, look: Look) -> str:
        """What the next look will decide."""
        if look.kind == "listdir":
            return self.pick("I look at what is there.", "First the layout of the project.", "Which files are there?")
        if look.kind == "grep" and look.text == OUTLINE:
            return self.pick("Which functions are there?", "I list the functions.", "An outline of the code helps now.")
        if look.kind == "grep":
            return self.pick(
                f"Where does {look.text} come from?",
                f"I look for {look.text}: where is it set, and who uses it?",
                f"Everything that mentions {look.text} is of interest.",
            )
        if look.kind == "view" and look.function is None:
            return self.pick(
                f"I read on in {look.path}.",
                f"What stands there in {look.path}?",
                f"The code in {look.path} around that is what I need now.",
            )
        return super().plan(look)

    def conclusion(self, where: str, line: str, trial: TriedChange | None) -> str:
        """What is wrong, after the value that has just shown it."""
        value = self.learned() if self.outputs and self.outputs[-1].tool == "pdb" else ""
        return f"{value} {self.hypothesis(where, line, trial)}".strip()

    def correction(self, where: str) -> str:
        """Before an edit that follows another, or whose place was not read."""
        return self.pick(
            f"{where} is wrong; I change it.",
            f"The cause is in {where}, so I correct that.",
            f"I repair {where}.",
            f"What is wrong stands in {where}: I rewrite it.",
        )

    def verify(self) -> str:
        """Before running the tests after an edit."""
        return self.pick("Do the tests pass now?", "I run the tests again.", "Now the tests have to come through.")

    def submit(self, failing: int) -> str:
        """Before submitting."""
        if failing:
            return f"{plural(failing, 'test')} still {'fails' if failing == 1 else 'fail'}."
        return self.pick("All tests pass.", "The tests pass: done.", "No test fails any more; that was it.")

    def give_up(self) -> str:
        """If nothing leads to the cause."""
        return self.pick("I found nothing to change.", "Nothing that I saw leads to the cause.")


def names_in(code: str) -> list[str]:
    """The names in a line of code, without keywords and builtins."""
    found = re.findall(r"[A-Za-z_]\w{2,}", code)
    return [name for name in dict.fromkeys(found) if not keyword.iskeyword(name) and not hasattr(builtins, name)]


def _window(found: Mapping[int, str], line: int) -> tuple[int, int]:
    """What to read around a line: from the function start that the search found before it to the next one, else some
    lines on both sides.
    """
    starts = [number for number, text in found.items() if text.lstrip().startswith(("def ", "async def "))]
    start = max((number for number in starts if number <= line), default=line - AROUND)
    end = min((number for number in starts if number > line), default=line + AROUND)
    if end - start > PAGE:
        start, end = line - PAGE // 2, line + PAGE // 2
    return max(start, 1), end
