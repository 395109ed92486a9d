"""What is measured of each task of a package's set: whether it is proven, and how hard its bug is to find.

The check stage proves each task from the files of its set alone; those that fail are dropped. The difficulty stage
adds these tags, as facts to group by and to draw sets from; a fact that cannot be measured is left out:

    failing_tests   how many tests fail
    distance        calls between the frame that failed and the nearest changed function, as `suspects` counts them
    module          `same` or `other`: whether a test fails in the file that is changed
    named           `yes` or `no`: whether a failure's message names a changed function or its file
    suspect         where the changed function is in the list of `suspects` by Ochiai: `first`, `tied` with others for
                    the first place, `below` them, or `none`
    rank            its place in that list, from 1 on
    traceback       `right` or `wrong`: whether a failing test's innermost frame in the project is in a changed function

The tag `difficulty` itself is there before, on all bugs that are made or found: it is `nearness` in `../tasks.py`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

from gumshoe.cache import JsonlCache, digest
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import gold_lines
from gumshoe.env.sandboxes.open import compile_tests, open_sandbox
from gumshoe.env.tasks.taskset import load_taskset, stored_taskset, write_taskset
from gumshoe.env.verifier.check import check_task
from gumshoe.env.verifier.proof import RepairedRuns
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ToolFailure
from gumshoe.records import Oracle, Task, TestOutcome, TestRun
from gumshoe.text import plural
from gumshoe.tools.code.functions import Span, innermost, spans
from gumshoe.tools.ranking.spectrum import Suspect, follow, functions_of, rank
from gumshoe.tools.runs.commands import is_pytest
from gumshoe.tools.runs.tracebacks import own_frames

CHECKED, RATED = "check.jsonl", "difficulty.jsonl"

Culprits = Sequence[tuple[str, Span]]
"""The changed functions: path and span."""


def check_package(package: PackageHarvest) -> tuple[int, dict[str, str]]:
    """Checks a package's set and leaves the proven tasks in it, each with what makes its tests fail.

    A test that fails here although a gold patch is right, which the other stages did not show, is left out of all
    tasks, and these are checked again. Returns how many tasks are proven, and what was wrong with each of the others.
    """
    folder, config = package.folder, package.config.sandbox
    repaired = RepairedRuns(config)

    def check(task: Task, oracle: Oracle) -> dict[str, Any]:
        result = check_task(task, oracle, config, repaired)
        return {"found": list(result.problems), "falsifiable": result.falsifiable, "unfit": list(result.unfit)}

    def key_of(task: Task, oracle: Oracle) -> str:
        return digest(task.hash, config.kind, oracle.fail_to_pass, oracle.pass_to_pass)

    measure = partial(_measure, package, CHECKED, check, key_of)
    facts = measure()
    unfit = {test for found in facts.values() for test in found["unfit"]}
    if unfit:
        package.say(f"again, without {plural(len(unfit), 'test')}")
        write_taskset(folder, [_without(task, oracle, unfit) for task, oracle in stored_taskset(folder)])
        facts = measure()
    rejected = {name: found["found"][0] for name, found in facts.items() if found["found"]}
    proven = [
        (task, Oracle.model_validate({**dict(oracle), "falsifiable": facts[task.id]["falsifiable"]}))
        for task, oracle in stored_taskset(folder)
        if task.id not in rejected
    ]
    write_taskset(folder, proven)
    return len(proven), rejected


def _without(task: Task, oracle: Oracle, unfit: Set[str]) -> tuple[Task, Oracle]:
    """A task whose command does not run some tests, and whose verdict does not rest on them."""
    named = [test for test in oracle.pass_to_pass if test in unfit]
    if not named:
        return task, oracle
    options = [f"--deselect={test}" for test in named] if is_pytest(task.entrypoint) else []
    passing = tuple(test for test in oracle.pass_to_pass if test not in unfit)
    return (
        task.model_copy(update={"entrypoint": (*task.entrypoint, *options)}),
        oracle.model_copy(update={"pass_to_pass": passing}),
    )


def rate_package(package: PackageHarvest) -> None:
    """Measures the tasks of a package's set and writes the tags. Raises SandboxError."""

    def rate(task: Task, oracle: Oracle) -> dict[str, Any]:
        return {"found": difficulty_of(task, oracle, package.config.sandbox)}

    facts = _measure(package, RATED, rate, lambda task, oracle: task.hash)
    rated = [
        (task.model_copy(update={"tags": {**task.tags, **facts[task.id]["found"]}}), oracle)
        for task, oracle in stored_taskset(package.folder)
    ]
    write_taskset(package.folder, rated)


def _measure(
    package: PackageHarvest,
    journal: str,
    measure: Callable[[Task, Oracle], Mapping[str, Any]],
    key_of: Callable[[Task, Oracle], str],
) -> dict[str, Mapping[str, Any]]:
    """What is measured of each task in a set, by its id. What a journal in the folder knows is not measured again."""
    pairs = load_taskset(package.folder)
    cache = JsonlCache(package.folder / journal)
    facts: dict[str, Mapping[str, Any]] = {}
    compile_tests((task for task, _ in pairs), package.config.sandbox)
    for number, (task, oracle) in enumerate(pairs, 1):
        package.say(f"{number} of {len(pairs)}")
        facts[task.id] = cache.find(key_of(task, oracle), partial(measure, task, oracle))
    return facts


def difficulty_of(task: Task, oracle: Oracle, config: SandboxConfig) -> dict[str, str]:
    """The tags of one task, measured in a sandbox of its own. Raises SandboxError."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        workspace = Workspace(task, sandbox)
        culprits = _find_culprits(workspace, oracle)
        run, ranked = _rank_suspects(workspace)
    # Following every line may fail tests that the bug does not, such as those that count references.
    failed = [outcome for outcome in run.outcomes if outcome.failed and outcome.id in oracle.fail_to_pass]
    tags = {"failing_tests": str(len(oracle.fail_to_pass))}
    if culprits:
        tags |= _failure_tags(failed, culprits) | _suspect_tags(ranked, culprits)
    return tags


def _rank_suspects(workspace: Workspace) -> tuple[TestRun, Sequence[Suspect]]:
    """A run of the tests, and the suspects. The traced run reports each test, too, if it can be traced."""
    try:
        run, spectrum = follow(workspace)
        ranked = rank(spectrum, functions_of(workspace, spectrum))
    except ToolFailure:
        return workspace.run_tests(tracebacks=False), ()
    return (run if run.outcomes else workspace.run_tests(tracebacks=False)), ranked


def _find_culprits(workspace: Workspace, oracle: Oracle) -> Culprits:
    """The innermost functions around the lines that the gold patch changes, each once."""
    found: list[tuple[str, Span]] = []
    for path, lines in gold_lines(oracle.gold_patch).items():
        try:
            source = workspace.read_text(path)
        except ToolFailure:
            continue
        functions = [span for span in spans(source) or () if not span.is_class]
        around = dict.fromkeys(innermost(functions, line) for line in sorted(lines))
        found += [(path, span) for span in around if span is not None]
    return found


def _failure_tags(failed: Sequence[TestOutcome], culprits: Culprits) -> dict[str, str]:
    """What messages and tracebacks of failing tests say of the culprits."""
    if not failed:
        return {}
    frames = [own_frames(outcome.frames) for outcome in failed]
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


def _suspect_tags(ranked: Sequence[Suspect], culprits: Culprits) -> dict[str, str]:
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
