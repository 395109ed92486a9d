"""Runs the tests in forks of one process: unchanged, watched by probes, and once for each changed line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import StopProbe, TestOutcome
from gumshoe.text import cut_line
from gumshoe.tools.runs.interpreters import our_plugin
from gumshoe.tools.runs.scripts import read_outcomes, read_written, run_script, script_folder

__all__ = ["ForkOutcome", "ForkedRuns", "KnownRun", "Variant", "read_answers", "run_forked"]

_SEEN_BYTES = 16 << 20


class Variant(BaseModel):
    """One change: at a line, the n-th time or every time, under a condition or always."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    line: int = Field(ge=1)
    do: str = Field(min_length=1)
    time: int | None = Field(default=None, ge=1)
    when: str | None = None

    def describe(self) -> str:
        """`path:line do`, with time and condition."""
        time = f" at time {self.time}" if self.time else ""
        when = f" when {self.when}" if self.when else ""
        return cut_line(f"{self.path}:{self.line} {self.do.replace(chr(10), '; ')}{time}{when}", 120)


class ForkOutcome(BaseModel):
    """What became of one run, as its process tells it: the exit code, None for one that was stopped, how often the
    changed line was reached, and whether all tests were run; or why the change cannot be made.
    """

    exit_code: int | None = Field(default=None, ge=-(1 << 31), lt=1 << 31)
    hits: int = Field(default=0, ge=0, lt=1 << 63)
    whole: bool = True
    error: str | None = None


_ANSWERS = TypeAdapter(list[ForkOutcome])


@dataclass(frozen=True)
class ForkedRuns:
    """What became of each run, the unchanged one first; the outcomes of its tests; what the probes wrote."""

    answers: list[ForkOutcome]
    outcomes: list[dict[str, TestOutcome]]
    seen: bytes


@dataclass(frozen=True)
class KnownRun:
    """The outcomes of the unchanged tests by id, and how long they took together."""

    outcomes: Mapping[str, TestOutcome]
    duration_s: float


def run_forked(
    workspace: Workspace,
    variants: Sequence[Variant],
    probes: Sequence[StopProbe] = (),
    known: KnownRun | None = None,
    *,
    repairs_only: bool = False,
) -> ForkedRuns:
    """Runs the tests unchanged, then each variant; nothing in the workspace changes.

    Args:
        workspace: where.
        variants: the changes, each run on its own.
        probes: what is watched in the unchanged run.
        known: the unchanged tests, where these were run: then only the failing ones are run, and all with variants
            that let one of them pass.
        repairs_only: with `known`, run all tests only with variants that let all failing ones pass.

    Raises:
        ToolFailure: the entrypoint is no Python program, or the tests ran too long.
    """
    folder = script_folder(workspace, "whatif")
    outcomes_before = known.outcomes if known is not None else {}
    request = {
        "variants": [variant.model_dump() for variant in variants],
        "probes": [probe.model_dump(exclude={"value"}) for probe in probes],
        "failing": [test for test, outcome in outcomes_before.items() if outcome.failed],
        "usual_s": known.duration_s if known is not None else None,
        "repairs_only": repairs_only,
        "folder": folder,
    }
    ran = run_script(workspace, "whatif", request, f"{our_plugin('runs.outcomes')} -p no:cacheprovider")
    try:
        answers = read_answers(workspace.sandbox.read_file(f"{folder}/answer.json", inside=False), len(variants) + 1)
    except (OSError, ValueError):
        why = "they ran too long" if ran.timed_out else "the entrypoint starts no Python program: " + ran.output[-300:]
        raise ToolFailure("no_whatif", f"The tests could not be run with changes: {why}") from None
    written = [read_outcomes(read_written(workspace, f"{folder}/{number}.jsonl")) for number in range(len(answers))]
    outcomes = [{outcome.id: outcome for outcome in each} for each in written]
    return ForkedRuns(
        answers=answers,
        outcomes=outcomes if answers[0].whole else [dict(outcomes_before), *outcomes[1:]],
        seen=read_written(workspace, f"{folder}/probes.jsonl")[:_SEEN_BYTES],
    )


def read_answers(data: bytes, count: int) -> list[ForkOutcome]:
    """The answers in the file that the runs' parent wrote. Raises ValueError where it does not hold so many."""
    try:
        answers = _ANSWERS.validate_json(data)
    except ValidationError:
        raise ValueError("not a list of answers") from None
    if len(answers) != count:
        raise ValueError(f"{len(answers)} answers, not {count}")
    return answers
