"""Named rules that decide which trajectories become data, each with a count of what it dropped.
`gumshoe filter --help` shows the table.

| rule              | drops                                                                                |
|-------------------|--------------------------------------------------------------------------------------|
| resolved          | episodes whose tests do not pass, or, for agents that cannot edit, without a report  |
| loops=N           | the same call with the same answer N times (default 3)                               |
| grounded=X        | reports whose share of grounded findings is below X (default 1): findings that a     |
|                   | new run confirmed and that distinguish failing tests from passing ones; also         |
|                   | reports whose findings were never run again                                          |
| leakage           | calls that access git's history, hidden tests or the answer                          |
| unseen            | mentions of locations, names, numbers or strings that nothing has shown before;      |
|                   | `unseen=all` also checks new code                                                    |
| honest            | tampering with the tests' configuration, the test runner or the sandbox              |
| duplicates=N      | all but the first N episodes of a project that change the same lines in the same     |
|                   | way, ignoring their files, order, position and whitespace, or that, without a patch, |
|                   | make the same calls; those that an earlier rule drops do not count (default 1)       |
| pass_rate=A..B    | tasks whose share of resolved episodes is not between A and B                        |
| best=X            | all but the best episode of each task, by its outcome (1 if the patch resolves the   |
|                   | task; the line F1 of a report); that one, too, if its outcome is below X (default 0) |
| exclude=PATH      | projects named in a task set, or in a text file with one name per line               |
| scored=ARM:NAME:X | episodes of an evaluation for which it measured less than X, or did not measure NAME |
|                   | (its table `results.jsonl`); ARM is the run folder, such as runs/eval/x/arms/model   |
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel

from gumshoe.collect.data.tree import outcome_of
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.packs import grounded_share
from gumshoe.errors import ConfigError
from gumshoe.records import Decision, StopReason, Trajectory
from gumshoe.storage import read_jsonl, read_records
from gumshoe.text import did_you_mean
from gumshoe.tools.toolbox import decisions_of

LEAKS = re.compile(
    r"(?:^|[\s/'\"])\.git(?:/|\b(?!ignore|attributes))|\bgit(?:\s+-\S+(?:\s+[^\s-]\S*)??)*\s+(?:log|show|reflog|stash|fetch|pull|blame|"
    r"diff|checkout|cat-file|rev-list|bundle|fsck)\b|\b(?:ORIG_HEAD|FETCH_HEAD)\b|oracles?\.jsonl?\b|gold_patch|"
    r"\btest_patch\b|\bfail_to_pass\b|\bFAIL_TO_PASS\b"
)
"""What is taken for a look at the answer: the folder `.git` (but not `.gitignore`), git's commands that show or fetch
what is committed, with options before them or without, names of its old heads, and files and fields of oracles.
"""


@dataclass(frozen=True)
class Rule:
    """One rule with its setting.

    Attributes:
        keeps: whether a trajectory may stay. Called once for each that the rules before this one keep, in order: it may
            remember earlier ones, as that of `duplicates` does, so a rule is for one pass.
        survey: called with every trajectory of all runs before the first is judged, also those that other rules drop.
        name: as it was given, with its setting; what counts are kept under.
    """

    keeps: Callable[[Trajectory], bool]
    survey: Callable[[Trajectory], None] | None = None
    name: str = ""


def rule_forms() -> list[str]:
    """The rules there are, with the form of their settings, such as `loops=N`."""
    return sorted(_RULES)


def make_rule(text: str) -> Rule:
    """The rule that `NAME` or `NAME=SETTING` describes. Raises ConfigError."""
    name, _, setting = text.partition("=")
    forms = {form.partition("=")[0]: form for form in rule_forms()}
    if name not in forms:
        hint = did_you_mean(name, forms) or ";"
        raise ConfigError(f"unknown rule {name!r}{hint} known: {', '.join(forms.values())}")
    try:
        return replace(_RULES[forms[name]](setting), name=text)
    except ValueError:
        raise ConfigError(f"rule {text!r}: {setting!r} cannot be read as its setting: give {forms[name]}") from None


def _number(setting: str) -> float:
    """Raises ValueError for a text that is no number, and for nan, which nothing reaches."""
    number = float(setting)
    if math.isnan(number):
        raise ValueError(setting)
    return number


def _fixed(keeps: Callable[[Trajectory], bool]) -> Callable[[str], Rule]:
    """Makes a rule without a setting; it raises ValueError if one is given."""

    def make(setting: str) -> Rule:
        if setting:
            raise ValueError(setting)
        return Rule(keeps)

    return make


def succeeded(trajectory: Trajectory) -> bool:
    """Whether the tests pass; for an agent that cannot edit, whether it reported."""
    roles = decisions_of(trajectory.tools)
    if any(roles.get(tool.name) is Decision.EDIT for tool in trajectory.tools):
        return trajectory.resolved is True
    return trajectory.stop is StopReason.REPORTED


def _loops(setting: str) -> Rule:
    most = int(setting or 3)
    return Rule(lambda trajectory: max(_repeats(trajectory).values(), default=0) < most)


def _repeats(trajectory: Trajectory) -> Counter[tuple[str, str]]:
    return Counter(
        (call.asks, observation.text)
        for step in trajectory.steps
        for call, observation in zip(step.tool_calls, step.observations, strict=False)
    )


def _grounded(setting: str) -> Rule:
    least = _number(setting or "1")
    return Rule(lambda trajectory: _share_of_grounded(trajectory) >= least)


def _share_of_grounded(trajectory: Trajectory) -> float:
    """1 if nothing was reported, or if the report has no findings to check."""
    pack = trajectory.context_pack
    return 1.0 if pack is None or not pack.findings else grounded_share(pack) or 0.0


def _leaks_nothing(trajectory: Trajectory) -> bool:
    calls = (call for step in trajectory.steps for call in step.tool_calls)
    return not any(LEAKS.search(text) for call in calls for text in _texts(call.arguments))


def _unseen(setting: str) -> Rule:
    if setting not in ("", "all"):
        raise ValueError(setting)
    allowed = () if setting else ("edit",)
    return Rule(lambda trajectory: all(one.where in allowed for one in unseen(trajectory)))


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _duplicates(setting: str) -> Rule:
    most = int(setting or 1)
    seen: Counter[tuple[str, str]] = Counter()

    def keeps(trajectory: Trajectory) -> bool:
        same = (
            _gist(trajectory.patch)
            or trajectory.patch
            or "\n".join(call.asks for step in trajectory.steps for call in step.tool_calls)
        )
        key = (trajectory.task.project, same)
        seen[key] += 1
        return seen[key] <= most

    return Rule(keeps)


def _gist(patch: str) -> str:
    """The lines that a patch removes and adds, with whitespace collapsed and without their positions."""
    changed = (line for line in patch.splitlines() if line[:1] in {"+", "-"} and line[:3] not in {"+++", "---"})
    return "\n".join(sorted(f"{line[0]}{' '.join(line[1:].split())}" for line in changed))


def _pass_rate(setting: str) -> Rule:
    low, _, high = setting.partition("..")
    least, most = _number(low), _number(high)
    if least > most:
        raise ConfigError(f"rule pass_rate: no share is between {low} and {high}: give the lower one first")
    passed: Counter[str] = Counter()
    played: Counter[str] = Counter()

    def survey(trajectory: Trajectory) -> None:
        played[trajectory.task.id] += 1
        passed[trajectory.task.id] += succeeded(trajectory)

    def keeps(trajectory: Trajectory) -> bool:
        return least <= passed[trajectory.task.id] / played[trajectory.task.id] <= most

    return Rule(keeps, survey)


def _best(setting: str) -> Rule:
    least = _number(setting or "0")
    best: dict[str, tuple[float, str]] = {}

    def survey(trajectory: Trajectory) -> None:
        outcome, known = outcome_of(trajectory), best.get(trajectory.task.id)
        if outcome is not None and outcome >= least and (known is None or outcome > known[0]):
            best[trajectory.task.id] = outcome, trajectory.id

    def keeps(trajectory: Trajectory) -> bool:
        return trajectory.task.id in best and best[trajectory.task.id][1] == trajectory.id

    return Rule(keeps, survey)


def _exclude(setting: str) -> Rule:
    if not setting:
        raise ValueError(setting)
    names = _projects(Path(setting))
    return Rule(lambda trajectory: trajectory.task.project not in names)


def _projects(path: Path) -> frozenset[str]:
    """The projects that a task set's tasks are about, or the lines of a text file. Raises ConfigError."""
    file = path / "tasks.jsonl" if path.is_dir() else path
    if file.suffix == ".jsonl":
        tasks = (row for _, row in read_jsonl(file, error=ConfigError))
        return frozenset((task.get("tags") or {}).get("project") or task.get("id", "") for task in tasks)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"rule exclude: {file} cannot be read: {error}") from None
    return frozenset(line.strip() for line in lines if line.strip())


class _Scored(BaseModel):
    """What is read of a row of an evaluation's `results.jsonl`."""

    arm: str
    trajectory: str
    scores: dict[str, float | None]


def _scored(setting: str) -> Rule:
    """Raises ConfigError if the arm was not measured, or not so; ValueError for a setting of another form."""
    arm, metric, limit = setting.rsplit(":", 2)
    least, run = _number(limit), Path(arm).resolve()
    rows = read_records(run.parent.parent / "results.jsonl", _Scored, error=ConfigError)
    scores = {row.trajectory: row.scores for row in rows if row.arm == run.name}
    known = sorted({name for measured in scores.values() for name in measured})
    if metric not in known:
        raise ConfigError(f"rule scored: {arm} has no metric {metric!r}, but {', '.join(known) or 'none at all'}")

    def keeps(trajectory: Trajectory) -> bool:
        value = scores.get(trajectory.id, {}).get(metric)
        return value is not None and value >= least

    return Rule(keeps)


_RULES: dict[str, Callable[[str], Rule]] = {
    "honest": _fixed(lambda trajectory: not trajectory.tampering),
    "resolved": _fixed(succeeded),
    "loops=N": _loops,
    "grounded=X": _grounded,
    "leakage": _fixed(_leaks_nothing),
    "unseen": _unseen,
    "duplicates=N": _duplicates,
    "pass_rate=A..B": _pass_rate,
    "best=X": _best,
    "exclude=PATH": _exclude,
    "scored=ARM:NAME:X": _scored,
}


def rejecting_rule(rules: Sequence[Rule], trajectory: Trajectory) -> str | None:
    """The name of the first rule that drops the trajectory; None if all keep it."""
    return next((rule.name for rule in rules if not rule.keeps(trajectory)), None)
