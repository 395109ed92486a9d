"""How well the reported locations cover the lines that the gold patch touches.

The buggy files are read from where the task keeps them, or fetched from its image beforehand.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.packs import Gold, Overlap, clean_path, lines_overlap
from gumshoe.collect.run.control import Control, run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import gold_lines
from gumshoe.env.host_git import Repositories
from gumshoe.env.sandboxes.open import choose, open_sandbox
from gumshoe.errors import GumshoeError, TaskError
from gumshoe.eval.score.conduct import stated_confidence
from gumshoe.protocols import Sandbox
from gumshoe.records import ContextPack, Location, Oracle, Task, Trajectory
from gumshoe.tools.code.functions import MODULE, Span, enclosing, spans

__all__ = [
    "Sources",
    "adherence",
    "changed_lines",
    "check_sources",
    "fetch_sources",
    "first_right_rank",
    "localization_of",
    "locations_of",
]

Files = Mapping[str, str | None]


def localization_of(trajectory: Trajectory, oracle: Oracle, sources: Sources) -> dict[str, float | None]:
    """The pack's locations against the gold patch, in files, functions and lines.

    `reciprocal_rank` is 1 / rank of the first location that holds a gold line, 0 if none does. `brier` is the squared
    difference between the confidence that was stated with the report and whether its first location holds a gold line:
    0 is best, always saying 0.5 gives 0.25, None if none was stated.

    An episode that ended without a pack handed over nothing: recall, F1 and reciprocal rank are 0, precision is None. A
    task whose gold patch touches no line of an existing file is unscored, and so are functions if the source cannot be
    read. Raises TaskError if the gold patch is not a patch.
    """
    gold = {path: lines for path, lines in gold_lines(oracle.gold_patch).items() if lines}
    places = locations_of(trajectory)
    lines = lines_overlap(places, gold)
    files = _sets_overlap({clean_path(place.path) for place in places}, gold.keys())
    functions = _functions_overlap(places, gold, trajectory.task.id, sources)
    rank = first_right_rank(places, gold)
    confidence = stated_confidence(trajectory)
    return {
        "file_recall": files.recall,
        "function_recall": None if functions is None else functions.recall,
        "line_precision": lines.precision if gold else None,
        "line_recall": lines.recall,
        "line_f1": lines.f1,
        "reciprocal_rank": None if not gold else 0.0 if rank is None else 1 / rank,
        "brier": None if confidence is None or not gold else (confidence - (rank == 1)) ** 2,
    }


def _functions_overlap(places: Sequence[Location], gold: Gold, task_id: str, sources: Sources) -> Overlap | None:
    """The innermost functions and classes, or modules, of the locations and of the gold lines."""
    found = {path: sources.spans(task_id, path) for path in gold}
    if any(of_file is None for of_file in found.values()):
        return None
    wanted = {(path, enclosing(found[path] or (), line)) for path, lines in gold.items() for line in lines}
    named = {
        (path, name)
        for place in places
        for path in [clean_path(place.path)]
        for name in _touched(sources.spans(task_id, path) or (), place)
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


def locations_of(trajectory: Trajectory) -> tuple[Location, ...]:
    """The locations that were handed over; none without a pack."""
    return trajectory.context_pack.locations if trajectory.context_pack is not None else ()


def _sets_overlap(named: Set[Hashable], gold: Set[Hashable]) -> Overlap:
    return Overlap(len(named), len(gold), len(named & gold))


def _touched(found: tuple[Span, ...], location: Location) -> set[str]:
    """The innermost functions and classes that a range of lines runs through.

    The innermost one changes only where a function begins or ends, so it is enough to look there.
    """
    edges = {location.start} | {line for span in found for line in (span.start, span.end + 1)}
    names = {enclosing(found, line) for line in edges if line in location.lines}
    return names - {MODULE} or names


class Sources:
    """Looks up the functions in a task's files.

    Args:
        tasks: the tasks whose files are looked up.
        fetched: by task id, the files of tasks that live in a container image; no other files of these are known.
    """

    def __init__(self, tasks: Iterable[Task], fetched: Mapping[str, Mapping[str, str | None]] | None = None) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._fetched = fetched or {}
        self._spans = lru_cache(maxsize=4096)(self._read_spans)

    def spans(self, task_id: str, path: str) -> tuple[Span, ...] | None:
        """Functions and classes of a file before the repair; None if there is no such readable Python file."""
        return self._spans(task_id, path)

    def text(self, task_id: str, path: str) -> str | None:
        """The file before the repair; None where it cannot be read, or would lie outside the repository."""
        task = self._tasks.get(task_id)
        if task is None:
            return None
        if path in task.workspace.overlay:
            return task.workspace.overlay[path]
        if task.workspace.path is None:
            return self._fetched.get(task_id, {}).get(path)
        root = Path(task.workspace.path).resolve()
        try:
            file = (root / path).resolve()
            return file.read_text(encoding="utf-8") if file.is_relative_to(root) else None
        except (OSError, ValueError, RuntimeError):
            return None

    def _read_spans(self, task_id: str, path: str) -> tuple[Span, ...] | None:
        text = self.text(task_id, path)
        return None if text is None else spans(text)


def fetch_sources(
    tasks: Sequence[tuple[Task, Oracle]],
    trajectories: Iterable[Trajectory],
    sandbox: SandboxConfig,
    path: Path,
    control: Control,
    workers: int,
    repositories: Repositories | None = None,
) -> dict[str, Files]:
    """The Python files that a gold patch or any pack names, by task id, for tasks that come only as an image.

    They are read from `repositories` where one of these has the task's base commit, else in a sandbox of the image.
    None stands for a file that does not exist. What was read is kept in the file `path`.

    Raises SandboxError or TaskError if neither can be read.
    """
    wanted = {task.id: set(gold_lines(oracle.gold_patch)) for task, oracle in tasks if task.workspace.path is None}
    for trajectory in trajectories:
        pack = trajectory.context_pack
        if pack is not None and trajectory.task.id in wanted:
            wanted[trajectory.task.id] |= {clean_path(place.path) for place in pack.locations}
    cache = JsonlCache(path)
    keys = {name: digest(name, sorted(paths)) for name, paths in wanted.items()}

    def read(task: Task) -> None:
        names = [name for name in sorted(wanted[task.id]) if name.endswith(".py")]
        if repositories is not None and repositories.find(task) is not None:
            files = repositories.read(task, names)
        else:
            files = _from_image(task, sandbox, names)
        cache.keep(keys[task.id], {"task_id": task.id, "files": files})

    todo = [task for task, _ in tasks if task.id in wanted and cache.get(keys[task.id]) is None]
    run_parallel(todo, read, workers=workers, control=control)
    known = {name: cache.get(key) for name, key in keys.items()}
    return {name: facts["files"] for name, facts in known.items() if facts is not None}


def _from_image(task: Task, sandbox: SandboxConfig, names: Sequence[str]) -> Files:
    opened = open_sandbox(task, sandbox, trusted=True)
    try:
        return {name: _text(opened, name) for name in names}
    finally:
        opened.close()


def check_sources(tasks: Iterable[Task], sandbox: SandboxConfig, repositories: Repositories | None) -> None:
    """Raises TaskError if a task that comes as an image has neither a repository here nor an image here or to pull."""
    for task in tasks:
        if task.workspace.path is not None or (repositories is not None and repositories.find(task) is not None):
            continue
        try:
            choose(task, sandbox, trusted=True)
        except GumshoeError as error:
            lacks = (
                "no repository in the folder `repositories` has its base commit"
                if repositories
                else ("the config names no folder of `repositories`")
            )
            raise TaskError(f"{task.id}: its files cannot be read: {error}; {lacks}") from None


def _text(sandbox: Sandbox, path: str) -> str | None:
    try:
        return sandbox.read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
