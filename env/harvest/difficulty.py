"""The difficulty stage: how hard each bug is to find, as facts to group by and to draw sets from.

A task gets these tags; a fact that cannot be measured is left out:

    failing_tests   how many tests fail
    distance        calls between the frame that failed and the nearest changed function, as `suspects` counts them
    module          `same` or `other`: whether a test fails in the file that is changed
    named           `yes` or `no`: whether a failure's message names a changed function or its file
    suspect         what `suspects` says of the changed function: `first`, `tied` with others for the first place,
                    `below` them, or `none` where it is not in the list
    rank            its place in that list, from 1 on
    traceback       `right` or `wrong`: whether a failing test's innermost frame in the project is in a changed function
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from gumshoe.cache import JsonlCache
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import gold_lines
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.env.sandboxes.compiling import compile_tests
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.taskset import load_taskset, write_taskset
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ToolFailure
from gumshoe.records import Oracle, Task, TestOutcome, TestRun
from gumshoe.storage import read_records
from gumshoe.tools.spans import Span, innermost, spans
from gumshoe.tools.suspects import Suspect, follow, functions_of, rank

__all__ = ["difficulty_of", "rate_package"]

JOURNAL = "difficulty.jsonl"

Culprits = Sequence[tuple[str, Span]]
"""The changed functions: path and span."""


def rate_package(folder: Path, config: SandboxConfig, say: Callable[[str], None]) -> None:
    """Measures the tasks of the set in `folder` and writes the tags. Raises SandboxError."""
    pairs = load_taskset(folder)
    cache = JsonlCache(folder / JOURNAL)
    rated: dict[str, dict[str, str]] = {}
    compile_tests((task for task, _ in pairs), config)
    for number, (task, oracle) in enumerate(pairs, 1):
        say(f"{number} of {len(pairs)}")
        measure = partial(difficulty_of, task, oracle, config)
        rated[task.id] = cache.find(task.hash, lambda measure=measure: {"found": measure()})["found"]
    stored = {task.id: task for task in read_records(folder / "tasks.jsonl", Task)}
    write_taskset(folder, [(_tagged(stored[task.id], rated[task.id]), oracle) for task, oracle in pairs])


def difficulty_of(task: Task, oracle: Oracle, config: SandboxConfig) -> dict[str, str]:
    """The tags of one task, measured in a sandbox of its own. Raises SandboxError."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        workspace = Workspace(task, sandbox)
        culprits = _culprits(workspace, oracle)
        run, ranked = _followed(workspace)
    # Following every line may fail tests that the bug does not, such as those that count references.
    failed = [outcome for outcome in _failed(run) if outcome.id in oracle.fail_to_pass]
    found = {"failing_tests": str(len(oracle.fail_to_pass))}
    if culprits:
        found |= _of_failures(failed, culprits) | _of_suspects(ranked, culprits)
    return found


def _followed(workspace: Workspace) -> tuple[TestRun, Sequence[Suspect]]:
    """A run of the tests, and the suspects. The traced run reports each test, too, if it can be traced."""
    try:
        run, spectrum = follow(workspace)
        ranked = rank(spectrum, functions_of(workspace, spectrum))
    except ToolFailure:
        return workspace.run_tests(tracebacks=False), ()
    return (run if run.outcomes else workspace.run_tests(tracebacks=False)), ranked


def _tagged(task: Task, tags: Mapping[str, str]) -> Task:
    return task.model_copy(update={"tags": {**task.tags, **tags}})


def _culprits(workspace: Workspace, oracle: Oracle) -> Culprits:
    return [
        (path, span)
        for path, lines in gold_lines(oracle.gold_patch).items()
        for span in _around(_read(workspace, path), lines)
    ]


def _around(source: str, lines: set[int]) -> Iterator[Span]:
    """The innermost functions around lines, each once."""
    functions = [span for span in spans(source) or () if not span.is_class]
    around = (innermost(functions, line) for line in sorted(lines))
    yield from dict.fromkeys(span for span in around if span is not None)


def _read(workspace: Workspace, path: str) -> str:
    try:
        return workspace.read_text(path)
    except ToolFailure:
        return ""


def _failed(run: TestRun) -> list[TestOutcome]:
    return [outcome for outcome in run.outcomes if outcome.outcome in {"failed", "error"}]


def _of_failures(failed: Sequence[TestOutcome], culprits: Culprits) -> dict[str, str]:
    """What messages and tracebacks of failing tests say of the culprits."""
    if not failed:
        return {}
    # A test's own frame is where the failure is seen, not a place that could be changed.
    frames = [[frame for frame in outcome.frames if not holds_tests(frame.path)] for outcome in failed]
    last = [below[-1] for below in frames if below]
    paths = {path for path, _ in culprits}
    right = any(
        frame.path == path and span.start <= frame.line <= span.end for frame in last for path, span in culprits
    )
    words = {span.name.rpartition(".")[2] for _, span in culprits} | {posixpath.basename(path) for path in paths}
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(word)}(?!\w)" for word in sorted(words)))
    return {
        "module": "same" if any(frame.path in paths for frame in last) else "other",
        "named": "yes" if any(pattern.search(outcome.message) for outcome in failed) else "no",
        "traceback": "right" if right else "wrong",
    }


def _of_suspects(ranked: Sequence[Suspect], culprits: Culprits) -> dict[str, str]:
    """Where the culprits rank among the suspects."""
    places = {(path, span.start) for path, span in culprits}
    found = [suspect for suspect in ranked if (suspect.path, suspect.span.start) in places]
    if not found:
        return {"suspect": "none"} if ranked else {}
    top = [suspect for suspect in ranked if suspect.score == ranked[0].score]
    place = "below" if found[0] not in top else "first" if len(top) == 1 else "tied"
    away = [suspect.distance for suspect in found if suspect.distance is not None]
    position = str(ranked.index(found[0]) + 1)
    return {"suspect": place, "rank": position, **({"distance": str(min(away))} if away else {})}
