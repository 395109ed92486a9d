"""Trajectories, tasks and oracles made by hand for the tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from gumshoe.collect.episode.spec import task_ref
from gumshoe.eval.arms.arm import Checks, PackSource, Solver
from gumshoe.records import (
    Completion,
    ContextPack,
    Decision,
    Failure,
    Finding,
    Location,
    Message,
    Observation,
    Oracle,
    PolicyInfo,
    Step,
    StopReason,
    Task,
    ToolCall,
    Trajectory,
    Usage,
    WorkspaceSpec,
)
from support.collect.small_trajectories import trajectory
from support.sandboxes.sandbox_backends import LOCAL_SETTINGS

SOURCE = """\
import math

LIMIT = 3


class Cart:
    def total(self):
        tax = 1

        def inner():
            return tax
        return inner()

    @property
    def size(self):
        return 0


def last():
    return LIMIT
"""

PATCH = """\
--- a/cart.py
+++ b/cart.py
@@ -7,5 +7,5 @@
     def total(self):
-        tax = 1
+        tax = 2
\x20
         def inner():
-            return tax
+            return tax + 1
"""
"""Touches lines 8 and 11 of SOURCE: `Cart.total` and `Cart.total.inner`."""


def make_task(name: str = "t", *, split: str = "heldout_bugs", source: str = SOURCE, **tags: str) -> Task:
    return Task(
        id=name,
        source="made",
        problem_statement="The total is wrong.",
        workspace=WorkspaceSpec(image="none", overlay={"cart.py": source}),
        entrypoint=("true",),
        tags={"split": split, "project": "cart", **tags},
    )


def make_oracle(name: str = "t", patch: str = PATCH) -> Oracle:
    return Oracle(task_id=name, gold_patch=patch)


def make_step(
    index: int = 0,
    text: str = "",
    *,
    tool: str = "view",
    failure: str | None = None,
    parse_error: str | None = None,
    calls: int = 1,
    confidence: float | None = None,
    decision: Decision = Decision.SEEK,
) -> Step:
    readable: dict[str, Any] = (
        {"arguments": {"path": "cart.py"}} if parse_error is None else {"parse_error": parse_error, "raw": "{"}
    )
    made = tuple(ToolCall(id=f"{index}-{number}", name=tool, **readable) for number in range(calls))
    failed = Failure(kind=failure, message=failure) if failure is not None else None
    return Step(
        index=index,
        message_index=2 + 2 * index,
        decision=decision,
        confidence=confidence,
        rationale="I look.",
        completion=Completion(text="I look.", tool_calls=made),
        observations=tuple(Observation(tool=tool, text=text, failure=failed) for _ in range(calls)),
        started_at=float(index),
        duration_s=1.0,
    )


def make_pack(*places: tuple[str, int, int], findings: Sequence[tuple[int, str]] = (), **more: Any) -> ContextPack:
    return ContextPack(
        locations=tuple(Location(path=path, start=start, end=end) for path, start, end in places),
        findings=tuple(Finding(claim="it shows", step=step, quote=quote) for step, quote in findings),
        **more,
    )


def make_trajectory(
    steps: Sequence[Step] = (),
    pack: ContextPack | None = None,
    *,
    task: Task | None = None,
    name: str = "one",
    tokens: int = 0,
) -> Trajectory:
    task = task or make_task()
    return trajectory(
        name,
        task=task_ref(task),
        policy=PolicyInfo(kind="made"),
        messages=(Message(role="user", content="go"),),
        steps=tuple(steps),
        stop=StopReason.STEP_LIMIT if pack is None else StopReason.REPORTED,
        context_pack=pack,
        usage=Usage(prompt_tokens=tokens),
    )


def check_part(part: PackSource | Solver, tasks: Sequence[tuple[Task, Oracle]]) -> int:
    """Has a part of an evaluation check itself. Returns what it has left to run; raises what it finds wrong."""
    checks = Checks()
    left = part.check(tasks, len(tasks), checks)
    checks.report()
    return left


def write_eval_config(folder: Path, **config: Any) -> Path:
    """The config of an evaluation in the local sandbox, with its results in `folder`/out."""
    path = folder / "eval.yaml"
    path.write_text(yaml.safe_dump({"out": str(folder / "out"), "sandbox": LOCAL_SETTINGS, **config}))
    return path
