"""The task that a bug makes, a set of them as rows, and the splits: which bugs, projects and packages training sees.

A task says what fails and how, as a test run shows it, and nothing about the cause. `gumshoe synth` also writes it as
a row of SWE-smith: a patch that puts the bug in, and the tests that fail and pass with it. `gumshoe tasks ...
swesmith:FOLDER/rows.jsonl` reads the rows again; so does whatever reads SWE-smith's. In place of an image, `project`
names the clean project as a task set does. All splits are drawn from a seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gumshoe.env.bugs.candidates import Candidate, CodePosition
from gumshoe.env.bugs.judging import CandidateVerdict, FailedTest
from gumshoe.env.bugs.projects import Project
from gumshoe.env.diff import make_patch, reverse_patch
from gumshoe.records import Oracle, Task, WorkspaceSpec
from gumshoe.storage import write_jsonl

MESSAGE_LINES, MESSAGE_CHARS = 6, 400
ROWS = "rows.jsonl"
NEARNESS = ("same_function", "other_function", "other_file")
SAME = 0.3
"""Packages are near-duplicates from this share on: of the smaller one's lines, those that the other has too."""
LINE_CHARS = 20


def task_of(
    project: Project,
    sources: Mapping[str, str],
    bug: Candidate,
    verdict: CandidateVerdict,
    split: str,
    readonly: tuple[str, ...],
) -> tuple[Task, Oracle]:
    """The task of a candidate that the tests detect.

    Args:
        sources: the texts of the clean files, by path.
        readonly: patterns of the files that an agent cannot write.
    """
    failures = verdict.failures or {}
    task = Task(
        id=f"synth/{project.name}/{bug.operator}-{bug.digest}",
        source="synth",
        problem_statement=problem_statement(failures),
        workspace=WorkspaceSpec(
            path=project.stored,
            overlay={bug.path: bug.text},
            environment=project.suite.environment,
        ),
        entrypoint=project.suite.task_entrypoint,
        limits=project.suite.limits,
        readonly=readonly,
        tags={
            "project": project.name,
            "operator": bug.operator,
            "split": split,
            "difficulty": nearness([bug.position], failures),
        },
    )
    oracle = Oracle(
        task_id=task.id,
        gold_patch=make_patch({bug.path: (bug.text.encode(), sources[bug.path].encode())}),
        fail_to_pass=tuple(failures),
        pass_to_pass=verdict.passing,
    )
    return task, oracle


def problem_statement(failures: Mapping[str, FailedTest]) -> str:
    """What a user who ran the tests would report. `failures` maps test ids, in the order of the run, to facts."""
    first, others = next(iter(failures)), len(failures) - 1
    lines = [f"{first} fails:", "", *_indented(failures[first].message), ""]
    if others:
        lines += ["So does one other test." if others == 1 else f"So do {others} other tests.", ""]
    lines += ["The tests are right. Find the cause and repair it.", ""]
    return "\n".join(lines)


def _indented(message: str) -> list[str]:
    lines = message[:MESSAGE_CHARS].rstrip().splitlines()
    cut = len(lines) > MESSAGE_LINES or len(message) > MESSAGE_CHARS
    shown = [f"    {line}".rstrip() for line in lines[:MESSAGE_LINES]]
    return [*shown, "    ..."] if cut else shown


def _smith_row(task: Task, oracle: Oracle) -> dict[str, Any]:
    """The row of one bug that operators made, with its project as a task set stores it."""
    return {
        "instance_id": task.id.replace("/", "."),
        "repo": task.tags["project"],
        "patch": reverse_patch(oracle.gold_patch),
        "FAIL_TO_PASS": list(oracle.fail_to_pass),
        "PASS_TO_PASS": list(oracle.pass_to_pass),
        "image_name": "",
        "problem_statement": task.problem_statement,
        "strategy": task.tags["operator"],
        "project": task.workspace.path,
    }


def write_rows(folder: Path, tasks: Iterable[tuple[Task, Oracle]]) -> None:
    """Replaces rows.jsonl in a folder. Equal tasks give equal bytes."""
    write_jsonl(folder / ROWS, (_smith_row(task, oracle) for task, oracle in tasks))


def nearness(places: Sequence[CodePosition], failures: Mapping[str, FailedTest]) -> str:
    """The tag `difficulty`: where the cause is, seen from the innermost frame of the traceback; the nearest counts.

    It comes from the run that showed the bug. What a harvest's stage `difficulty` measures are other tags, which
    `packages/check.py` lists.

    `same_function`: the traceback ends in the function with the cause. `other_function`: in the same file.
    `other_file`: elsewhere, such as in the assertion of a test; or the fix only adds files.
    """
    distances = (_distance(place, failure) for place in places for failure in failures.values())
    return min(distances, key=NEARNESS.index, default=NEARNESS[-1])


def _distance(place: CodePosition, failure: FailedTest) -> str:
    if not failure.frames:
        return "other_file"
    path, _, function = failure.frames[-1]
    if path != place[0]:
        return "other_file"
    return "same_function" if function == place[1].rpartition(".")[2] else "other_function"


def heldout_names(projects: Sequence[str], share: float, seed: int) -> set[str]:
    """The projects that training never sees: the share, rounded, but at least one where there are several.

    At least one project is left for training.
    """
    if share == 0 or len(projects) < 2:
        return set()
    count = min(max(1, round(share * len(projects))), len(projects) - 1)
    return set(_rng("projects", seed).sample(sorted(projects), count))


def assign_splits(functions: Mapping[str, str], share: float, seed: int) -> dict[str, str]:
    """`train` or `heldout_bugs` for each bug of a training project.

    All bugs with the same function go to the same side, so that no held-out bug has a twin in training. Whole functions
    are held out until the share is reached; the last function is never taken.

    Args:
        functions: bug id to the function that it is in; with `heldout_by: bug`, to a name that no other bug shares.
    """
    bugs: dict[str, list[str]] = {}
    for bug, function in functions.items():
        bugs.setdefault(function, []).append(bug)
    order = sorted(bugs)
    _rng("bugs", seed).shuffle(order)
    wanted = share * len(functions)
    held: set[str] = set()
    for function in order[:-1]:
        if len(held) + len(bugs[function]) / 2 <= wanted:
            held.update(bugs[function])
    return {bug: "heldout_bugs" if bug in held else "train" for bug in functions}


def _rng(purpose: str, seed: int) -> random.Random:
    return random.Random(f"gumshoe.synth {purpose} {seed}")


def heldout_packages(sources: Mapping[str, str], share: float, seed: int) -> set[str]:
    """The packages that training never sees: whole families of near-duplicates, drawn from a seed.

    Args:
        sources: package to the text of its sources.
    """
    groups = families(sources)
    chosen = heldout_names([group[0] for group in groups], share, seed)
    return {name for group in groups if group[0] in chosen for name in group}


def families(sources: Mapping[str, str]) -> list[list[str]]:
    """The packages in groups of near-duplicates, all sorted."""
    lines = {name: _lines(text) for name, text in sources.items()}
    groups: list[list[str]] = []
    for name in sorted(sources):
        near = [group for group in groups if any(_alike(lines[name], lines[other]) for other in group)]
        merged = sorted([name, *(other for group in near for other in group)])
        groups = [*(group for group in groups if group not in near), merged]
    return sorted(groups)


def _lines(text: str) -> frozenset[str]:
    """The lines that say something of their own: long enough, without white space."""
    stripped = (re.sub(r"\s+", "", line) for line in text.splitlines())
    return frozenset(
        line for line in stripped if len(line) >= LINE_CHARS and not line.startswith(("#", "import", "from"))
    )


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    smaller = min(len(one), len(other))
    return smaller > 0 and len(one & other) >= SAME * smaller
