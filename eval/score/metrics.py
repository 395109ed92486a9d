"""The metrics of one episode: what each is called, in which unit, and how it is computed.

A metric is a name in the dictionary that `own_scores` returns, and an entry with that name in `METRICS`, which says how
its mean is written, or in `UNAVERAGED`. Conduct is what needs no gold patch; localization is how well the reported
places cover the lines that the gold patch touches; Acc@k, over files and functions, follows LocAgent's rule, which
SweRank and CodeScout share. Some values are filled elsewhere: `solved`, `adherence` and `solver_*` in `results`, from
the arm's solution, and `official` in `swebench`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from unidiff.patch import Hunk, Line

from gumshoe.agreement import INVALID_KINDS
from gumshoe.collect.packs import Gold, Overlap, clean_path, grounded_share, lines_overlap
from gumshoe.env.diff import apply_hunks, gold_lines, parse_patch, relocate
from gumshoe.errors import TaskError
from gumshoe.eval.score.buggy_code import BuggyCode
from gumshoe.records import ContextPack, Location, Oracle, Step, Trajectory
from gumshoe.tools.code.functions import MODULE, Span, enclosing, spans

ACC = (("file", 1), ("file", 5), ("function", 1), ("function", 5))


@dataclass(frozen=True)
class Metric:
    """How a metric is named and measured.

    `unit` is `share` for what lies between 0 and 1 and is written in percent, `dollars` for money, else the plural of
    what is counted; empty for a number without a unit.
    """

    name: str
    title: str
    help: str
    unit: str = "share"


METRICS = (
    Metric("solved", "Solved", "bugs that are fixed in the end"),
    Metric("official", "Official", "bugs that are fixed according to the official harness"),
    Metric("adherence", "Adherence", "patches that change a line that was reported to the solver"),
    Metric("valid_calls", "Valid calls", "turns whose tool calls could be carried out"),
    Metric("debugged", "Debugged", "episodes that used the debugger"),
    Metric("reported", "Reported", "episodes that made a report before their limit"),
    Metric("file_recall", "File recall", "files that the fix touches, named in the report"),
    Metric("function_recall", "Function recall", "functions that the fix touches, named in the report"),
    Metric("line_recall", "Line recall", "lines that the fix touches, named in the report"),
    Metric("line_precision", "Line precision", "lines named in the report that the fix touches: context efficiency"),
    Metric("line_f1", "Line F1", "harmonic mean of precision and recall, in lines"),
    Metric("reciprocal_rank", "Reciprocal rank", "1 / rank of the first location that holds a line of the fix"),
    *(
        Metric(
            f"{level}_acc@{k}", f"{level.capitalize()}@{k}", f"all {level}s that the fix edits are among the first {k}"
        )
        for level, k in ACC
    ),
    Metric("grounding", "Grounded", "findings that a new run confirms and that tell failing tests from passing ones"),
    Metric("steps", "Steps", "turns of an episode", unit="turns"),
    Metric("tokens", "Tokens", "tokens of an episode, prompt and completion", unit="tokens"),
    Metric("cost", "Cost", "dollars of an episode", unit="dollars"),
    Metric("solver_steps", "Solver steps", "turns of the solver, or changes that it tried", unit="turns"),
    Metric("solver_tokens", "Solver tokens", "tokens of the solver on a task", unit="tokens"),
    Metric("solver_cost", "Solver cost", "dollars of the solver on a task", unit="dollars"),
)
"""Everything that a summary averages, except pass@k and metrics of the config's own."""
UNAVERAGED = frozenset({"confidence", "seconds", "solver_seconds"})
"""What else Gumshoe measures: its means would say nothing by themselves. Confidence is held against what was right, as
calibration; seconds do not depend on the policy alone, and stay with each result and in timing.json.
"""
BY_NAME = {metric.name: metric for metric in METRICS}


def own_scores(trajectory: Trajectory, oracle: Oracle, code: BuggyCode) -> dict[str, float | None]:
    """All of Gumshoe's own metrics of an episode, by name. Raises TaskError if the gold patch is not a patch."""
    return {
        **conduct_of(trajectory),
        **localization_of(trajectory, oracle, code),
        **accuracy_of(trajectory, oracle, code),
    }


def conduct_of(trajectory: Trajectory) -> dict[str, float | None]:
    """The metrics that need no gold patch: shares are 0 to 1, `cost` is in dollars, `seconds` in seconds.

    `grounding` is the share of findings whose probe was confirmed and tells failing tests from passing ones: None where
    there is no pack, a pack without findings, or one whose findings were never checked. `confidence` is what was stated
    in the turn that handed the pack over.
    """
    steps, pack = trajectory.steps, trajectory.context_pack
    return {
        "valid_calls": valid_share(steps),
        "debugged": float(any(call.name == "pdb" for step in steps for call in step.tool_calls)),
        "reported": float(pack is not None),
        "grounding": None if pack is None else grounded_share(pack),
        "confidence": steps[-1].confidence if pack is not None and steps else None,
        "steps": len(steps),
        "tokens": tokens_of(trajectory),
        "cost": trajectory.usage.cost_usd,
        "seconds": seconds_of(trajectory),
    }


def valid_share(steps: Sequence[Step]) -> float | None:
    """The share of turns whose calls all named a known tool with arguments that fit its schema; None without a turn.

    A turn without a call is an invalid one: the agent had to act and did not. Turns, not calls, are counted, so that
    a policy cannot raise its share by calling many tools at once.
    """
    return sum(map(_is_valid, steps)) / len(steps) if steps else None


def _is_valid(step: Step) -> bool:
    """Whether all that a turn asked for could be carried out, and it asked for something."""
    if not step.tool_calls or any(call.parse_error is not None for call in step.tool_calls):
        return False
    failures = (observation.failure for observation in step.observations)
    return not any(failure is not None and failure.kind in INVALID_KINDS for failure in failures)


def tokens_of(trajectory: Trajectory) -> int | None:
    """Prompt and completion together; None for a policy that uses no tokens."""
    usage = trajectory.usage
    return usage.tokens or None


def seconds_of(trajectory: Trajectory) -> float | None:
    """From the beginning of the episode to the end of its last turn."""
    last = trajectory.steps[-1] if trajectory.steps else None
    return None if last is None else last.started_at + last.duration_s


def tool_counts(trajectory: Trajectory) -> dict[str, int]:
    """How often each tool was called, by name; calls that could not be read are left out."""
    return dict(Counter(call.name for step in trajectory.steps for call in step.tool_calls if call.parse_error is None))


def localization_of(trajectory: Trajectory, oracle: Oracle, code: BuggyCode) -> dict[str, float | None]:
    """The pack's locations against the gold patch, in files, functions and lines.

    `reciprocal_rank` is 1 / rank of the first location that holds a gold line, 0 if none does.

    An episode that ended without a pack handed over nothing: recall, F1 and reciprocal rank are 0, precision is None. A
    task whose gold patch touches no line of an existing file is unscored, and so are functions if the source cannot be
    read. Raises TaskError if the gold patch is not a patch.
    """
    gold = {path: lines for path, lines in gold_lines(oracle.gold_patch).items() if lines}
    places = locations_of(trajectory)
    lines = lines_overlap(places, gold)
    files = _sets_overlap({clean_path(place.path) for place in places}, gold.keys())
    functions = _functions_overlap(places, gold, trajectory.task.id, code)
    rank = first_right_rank(places, gold)
    return {
        "file_recall": files.recall,
        "function_recall": None if functions is None else functions.recall,
        "line_precision": lines.precision if gold else None,
        "line_recall": lines.recall,
        "line_f1": lines.f1,
        "reciprocal_rank": None if not gold else 0.0 if rank is None else 1 / rank,
    }


def _functions_overlap(places: Sequence[Location], gold: Gold, task_id: str, code: BuggyCode) -> Overlap | None:
    """The innermost functions and classes, or modules, of the locations and of the gold lines."""
    found = {path: code.spans(task_id, path) for path in gold}
    if any(of_file is None for of_file in found.values()):
        return None
    wanted = {(path, enclosing(found[path] or (), line)) for path, lines in gold.items() for line in lines}
    named = {
        (path, name)
        for place in places
        for path in [clean_path(place.path)]
        for name in _innermost_names(code.spans(task_id, path) or (), place)
    }
    return _sets_overlap(named, wanted)


def first_right_rank(locations: Iterable[Location], gold: Gold) -> int | None:
    """The rank, from 1, of the first location that holds a gold line; None where none does."""
    for rank, location in enumerate(locations, start=1):
        if any(line in location.lines for line in gold.get(clean_path(location.path), ())):
            return rank
    return None


def adherence(pack: ContextPack | None, patch: str) -> float | None:
    """1.0 if the patch changes a line of a reported location, else 0.0; None without locations or without a patch.

    An insertion counts as a change of the line before it, as `gold_lines` has it.
    """
    changed = changed_lines(patch) if patch.strip() else None
    if pack is None or not pack.locations or changed is None:
        return None
    return float(first_right_rank(pack.locations, changed) is not None)


@lru_cache(maxsize=512)
def changed_lines(patch: str | None) -> Gold | None:
    """The lines that any patch changes, by path; None if it is not known or not a patch."""
    if patch is None:
        return None
    try:
        return gold_lines(patch)
    except TaskError:
        return None


def _sets_overlap(named: Set[Hashable], gold: Set[Hashable]) -> Overlap:
    return Overlap(len(named), len(gold), len(named & gold))


def _innermost_names(found: tuple[Span, ...], location: Location) -> set[str]:
    """The innermost functions and classes that a range of lines runs through.

    The innermost one changes only where a function begins or ends, so it is enough to look there.

        1  class Cart:
        2      def total(self):          lines 2-4: {"Cart.total", "Cart.total.add"}
        3          def add(price):       line 3: {"Cart.total.add"}
        4              return price      line 1: {"Cart"}
    """
    edges = {location.start} | {line for span in found for line in (span.start, span.end + 1)}
    names = {enclosing(found, line) for line in edges if line in location.lines}
    return names - {MODULE} or names


def accuracy_of(trajectory: Trajectory, oracle: Oracle, code: BuggyCode) -> dict[str, float | None]:
    """Acc@k at each level: what was handed over is ranked by the order of the pack's locations.

    A function is what `edited_functions` counts. None if the gold patch edits no existing function that can be read: as
    with LocAgent, the task is unscored. Raises TaskError if that is not a patch.
    """
    task_id, places = trajectory.task.id, locations_of(trajectory)
    edited = _edited_in(code, task_id, oracle.gold_patch)
    if not edited:
        return {f"{level}_acc@{k}": None for level, k in ACC}
    gold = {"file": [name.partition(":")[0] for name in edited], "function": edited}
    named = {
        "file": [clean_path(place.path) for place in places],
        "function": [name for place in places for name in functions_at(place, task_id, code)],
    }
    return {f"{level}_acc@{k}": acc_at(named[level], gold[level], k) for level, k in ACC}


@lru_cache(maxsize=4096)
def _edited_in(code: BuggyCode, task_id: str, patch: str) -> tuple[str, ...] | None:
    return edited_functions(patch, lambda path: code.text(task_id, path))


def functions_at(place: Location, task_id: str, code: BuggyCode) -> list[str]:
    """What a location names, as `path:function`: the functions that its lines run through, or a class."""
    path = clean_path(place.path)
    return [f"{path}:{name}" for name in _outermost_names(code.spans(task_id, path) or (), place)]


def locations_of(trajectory: Trajectory) -> tuple[Location, ...]:
    """The locations that were handed over; none without a pack."""
    return trajectory.context_pack.locations if trajectory.context_pack is not None else ()


def acc_at(named: Iterable[str], gold: Iterable[str], k: int) -> float:
    """Whether all of `gold` is among the first `k` of `named`, each counted once: 1 or 0.

    If `gold` has more than `k`, all of the first `k` have to be among them.
    """
    first, wanted = list(dict.fromkeys(named))[:k], set(gold)
    return float(len(wanted.intersection(first)) == min(len(wanted), k))


def _outermost_names(found: tuple[Span, ...], place: Location) -> list[str]:
    """The class or function whose exact lines a location gives; else the functions that it runs through, in order.

    If it runs through no function, the innermost of the classes that it runs through.

        1  class Cart:
        2      def total(self):          lines 2-4, or 3 alone: ["Cart.total"]
        3          def add(price):       lines 1-4: ["Cart"], its exact lines
        4              return price      line 1: ["Cart"]
    """
    whole = next((span for span in found if (span.start, span.end) == (place.start, place.end)), None)
    if whole is not None:
        return [whole.name if whole.is_class else function_of(found, whole.start) or whole.name]
    met = [span for span in found if span.start <= place.end and place.start <= span.end]
    functions = (function_of(found, max(span.start, place.start)) for span in met if not span.is_class)
    names = list(dict.fromkeys(name for name in functions if name is not None))
    return names or [span.name for span in met][-1:]


def edited_functions(patch: str, read: Callable[[str], str | None]) -> tuple[str, ...] | None:
    """The existing functions that `patch` edits, each as `path:name`, in the order of the patch.

    A function counts when the patch removes or adds a line in it that is neither blank, nor a comment, nor an import.
    Functions that the patch adds do not count, nor do lines of a class or a module outside of any function. A nested
    function belongs to the one around it.

    `read` gives the text of a file before the patch. None where a Python file that the patch changes cannot be read or
    parsed, or the patch does not fit it. Raises TaskError if `patch` is not a unified diff.
    """
    found: dict[str, None] = {}
    for file in parse_patch(patch):
        if file.source is None or not file.source.endswith(".py") or not file.hunks:
            continue
        before = read(file.source)
        if before is None:
            return None
        file = relocate(file, before)
        try:
            old, new = _Code.parse(before), _Code.parse(apply_hunks(file, before))
        except TaskError:
            return None
        if old is None or new is None:
            return None
        for line in (line for hunk in file.hunks for line in _changed(hunk)):
            code, number = (old, line.source_line_no) if line.is_removed else (new, line.target_line_no)
            name = code.function(number or 0)
            if name is not None and name in old.functions:
                found[f"{file.source}:{name}"] = None
    return tuple(found)


def function_of(found: tuple[Span, ...], line: int) -> str | None:
    """The outermost function around `line`, methods with their class; None outside of any function."""
    return next((span.name for span in found if not span.is_class and span.start <= line <= span.end), None)


class _Code:
    """Which function each line of a Python file belongs to."""

    def __init__(self, found: tuple[Span, ...], imports: set[int]) -> None:
        self._spans = found
        self._imports = imports
        self.functions = {span.name for span in found if not span.is_class}

    @classmethod
    def parse(cls, text: str) -> _Code | None:
        """None if it is no Python that can be parsed here."""
        found = spans(text)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        if found is None:
            return None
        nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom)))
        return cls(found, {line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)})

    def function(self, line: int) -> str | None:
        """The function that a line belongs to; None for an import, or outside of any function."""
        return None if line in self._imports else function_of(self._spans, line)


def _changed(hunk: Hunk) -> Iterator[Line]:
    for line in hunk:
        text = line.value.strip()
        if (line.is_added or line.is_removed) and text and not text.startswith("#"):
            yield line
