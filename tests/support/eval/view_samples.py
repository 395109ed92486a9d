"""A run, a dataset, an evaluation and their tasks, small and with everything in them that the viewer shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gumshoe.collect.data.export.export import export_runs
from gumshoe.collect.episode.spec import task_ref
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.eval.records import ArmSummary, CalibrationBin, FlakyTask, LossCurve, Result, Summary
from gumshoe.eval.score.measures import Bootstrap, compare, compare_all, measures, per_resolved
from gumshoe.records import (
    Check,
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
    Provenance,
    Score,
    Step,
    StopProbe,
    StopReason,
    Task,
    ToolCall,
    ToolSchema,
    Trajectory,
    Usage,
    WorkspaceSpec,
)

CART = b"def total(prices):\n    tax = 1\n    return sum(prices) * tax\n"
GOLD = make_patch({"cart.py": (CART, CART.replace(b"tax = 1", b"tax = 2"))})
WRONG = make_patch({"cart.py": (CART, CART.replace(b"* tax", b"* tax * tax"))})
TOOLS = tuple(
    ToolSchema(name=name, description=f"The tool {name}.", parameters={"type": "object", "properties": {}})
    for name in ("eval", "view", "pdb", "rewrite", "report", "submit")
)
SHOWN: dict[str, Any] = {"path": "cart.py", "start": 1, "end": 3, "lines": CART.decode().splitlines()}
FRAME = {"path": "test_cart.py", "line": 9, "function": "test_total", "code": "total(p)"}
FAILED = {
    "passed": False,
    "outcomes": [{"id": "test_cart.py::test_total", "outcome": "failed", "message": "FAILED", "frames": [FRAME]}],
}
VIEW = "cart.py 1-3 of 3 lines\n 1 def total(prices):\n 2     tax = 1\n 3     return sum(prices) * tax"
STOP = (
    "breakpoint 1 at cart.py:2\n> cart.py:2 in total (breakpoint 1)\n"
    "  1 def total(prices):\n->2     tax = 1\nprices = [3, 4]"
)
PLACE = {"path": "cart.py", "line": 2, "function": "total"}
DEBUGGER = {
    "state": "stopped",
    "stop": {**PLACE, "reason": "breakpoint", "source": [[n, line] for n, line in enumerate(SHOWN["lines"], 1)]},
    "frames": [
        {**FRAME, "local_values": {}},
        {**PLACE, "code": "tax = 1", "local_values": {"prices": "[3, 4]"}},
    ],
    "index": 1,
    "breakpoints": [{"number": 1, "path": "cart.py", "line": 2, "condition": "prices", "enabled": True, "hits": 1}],
}
DIFF = "@@ -1,3 +1,3 @@\n def total(prices):\n-    tax = 1\n+    tax = 2\n     return sum(prices) * tax"
Turn = tuple[str, Decision, str, dict[str, Any], str, dict[str, Any]]
SEEK: tuple[Turn, ...] = (
    ("eval", Decision.VERIFY, "I run the tests.", {}, "1 failed\nFAILED test_cart.py::test_total", FAILED),
    ("view", Decision.SEEK, "I read total.", {"path": "cart.py"}, VIEW, SHOWN),
    ("pdb", Decision.SEEK, "Which tax is there?", {"command": "b cart.py:2, prices\nc"}, STOP, DEBUGGER),
)
EDIT = {"path": "cart.py", "code": "    tax = 2\n", "start": 2, "end": 2}
EDITED = {"path": "cart.py", "diff": DIFF}
REPAIR: tuple[Turn, ...] = (
    ("rewrite", Decision.EDIT, "The tax is wrong.", EDIT, f"rewrote cart.py\n{DIFF}", EDITED),
    ("eval", Decision.VERIFY, "I run them again.", {}, "1 passed", {}),
    ("submit", Decision.SUBMIT, "Done.", {}, "submitted", {}),
)
REPORT: tuple[Turn, ...] = (("report", Decision.REPORT, "I hand it over.", {"locations": []}, "reported", {}),)
PACK = ContextPack(
    locations=(
        Location(path="cart.py", start=2, end=2, symbol="total", why="the tax"),
        Location(path="test_cart.py", start=1, end=3),
    ),
    findings=(
        Finding(
            claim="the prices are known",
            step=2,
            quote="prices = [3, 4]",
            probe=StopProbe(
                path="cart.py", line=2, time=1, test="test_cart.py::test_total", expression="prices", value="[3, 4]"
            ),
            check=Check(status="confirmed", telling=True),
        ),
        Finding(claim="the tax was seen", step=1, quote="tax = 7"),
    ),
    hypothesis="The tax is 1 and should be 2.",
    reproduction="def test_tax():\n    assert total([3]) == 6\n",
)


def make_task(number: int) -> tuple[Task, Oracle]:
    task = Task(
        id=f"shop/tax-{number}",
        source="made",
        problem_statement="The total is wrong.",
        workspace=WorkspaceSpec(path="casebook:build_plan", overlay={"cart.py": "def total(prices):\n    tax = 1\n"}),
        entrypoint=("true",),
        tags={"project": f"shop{number % 3}", "split": "heldout" if number % 2 else "train"},
    )
    return task, Oracle(task_id=task.id, gold_patch=GOLD)


def make_trajectory(
    number: int,
    turns: Sequence[Turn] = (*SEEK, *REPAIR),
    *,
    pack: ContextPack | None = None,
    resolved: bool | None = True,
    text: str = "",
    policy: str = "openai",
    created: str = "",
    said: str = "",
) -> Trajectory:
    """An episode on task `number`; `text` is put behind the first observation."""
    task, _ = make_task(number)
    messages = [
        Message(role="system", content="You repair."),
        Message(role="user", content=f"The total of {task.id} is wrong. {said}"),
    ]
    steps: list[Step] = []
    for index, (tool, decision, why, arguments, observed, data) in enumerate(turns):
        call = ToolCall(id=f"c{index}", name=tool, arguments=arguments)
        spent = {"prompt_tokens": 100 * (index + 1), "completion_tokens": 20, "cached_tokens": 50}
        usage = Usage(**spent, cost_usd=0.01, duration_s=0.4)
        said_so = f"[{decision.value} 0.{index + 3}] {why}"
        completion = Completion(text=said_so, tool_calls=(call,), usage=usage, model="tiny")
        seen = observed + (text if index == 0 else "")
        failure = Failure(kind="bad_arguments", message="no") if tool == "submit" and number == 1 else None
        steps.append(
            Step(
                index=index,
                message_index=len(messages),
                decision=decision,
                stated=decision,
                rationale=why,
                confidence=(index + 3) / 10,
                completion=completion,
                observations=(Observation(tool=tool, text=seen, data=data, duration_s=0.1, failure=failure),),
                elided=4 if index == 3 and number == 1 else 0,
                started_at=float(index),
                duration_s=0.5,
            )
        )
        answer = Message(role="tool", content=f"[step {index}] {seen}", tool_call_id=call.id, name=tool)
        messages += [completion.as_message(), answer]
    ended = StopReason.REPORTED if pack is not None else StopReason.SUBMITTED
    return Trajectory(
        id=f"{task.id}#0.{number:04d}{policy}",
        task=task_ref(task),
        policy=PolicyInfo(kind=policy, model="models/tiny", agent="debug"),
        tools=TOOLS,
        messages=tuple(messages),
        steps=tuple(steps),
        stop=ended,
        patch=GOLD if resolved and pack is None else "",
        context_pack=pack,
        scores=() if resolved is None else (Score(name="resolved", value=float(resolved), explanation="tests run"),),
        usage=Usage(prompt_tokens=1000 + number, completion_tokens=120, cost_usd=0.01 * (number + 1)),
        provenance=Provenance(
            gumshoe="0", python="3", sandbox="local", created_at=created or f"2026-01-{1 + number % 28:02d}T10:00:00Z"
        ),
    )


def write_run(folder: Path, trajectories: Sequence[Trajectory]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{one.model_dump_json()}\n" for one in trajectories)
    (folder / "trajectories.jsonl").write_text(lines, encoding="utf-8")
    return folder


def write_journal(folder: Path, name: str, turns: Sequence[Turn]) -> Path:
    """An episode in flight."""
    (folder / "journal").mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = [{"episode": {"id": f"shop/{name}#0.ff", "run": "r", "seed": 1, "task": "h"}}]
    for tool, decision, why, arguments, observed, _ in turns:
        call = ToolCall(id="c", name=tool, arguments=arguments)
        completion = Completion(text=f"[{decision.value} 0.5] {why}", tool_calls=(call,))
        entries += [{"completion": completion.model_dump(mode="json")}, {"observations": [observed]}]
    path = folder / "journal" / f"{name}.jsonl"
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    return path


HOSTILE = "\n".join(
    (
        "<script>window.ran = 1</script>",
        "<img src=x onerror='window.ran = 1'>",
        "\"><svg onload='window.ran = 1'>",
        "javascript:window.ran=1",
        "</script><script>window.ran = 1</script>",
        "{{constructor.constructor('window.ran = 1')()}}",
        "\x1b[31mred\x1b]0;title\x07\x1b[2J",
        "safe\u202egnp.exe\u2066\u200b",
        "../../../../etc/passwd",
    )
)


# --- an evaluation, and everything --------------------------------------------------------------------------------

DRAWS = Bootstrap(0, 100)
CALIBRATED: dict[str, Any] = {
    "tools": {"view": 1.5, "pdb": 0.5},
    "calibration": (
        CalibrationBin(low=0.5, high=0.6, confidence=0.55, right=0.5, count=2),
        CalibrationBin(low=0.8, high=0.9, confidence=0.85, right=1.0, count=4),
    ),
    "calibration_error": 0.15,
}


def write_evaluation(folder: Path, tasks: int = 6, *, solver: bool = False) -> Path:
    """Two arms: one reports packs, the other reports nothing; with a solver's arm.

    With `solver` the solver is an agent whose episodes lie there, too, and everything is written down of them.
    """
    seeker = [make_trajectory(number, (*SEEK, *REPORT), pack=PACK, resolved=None) for number in range(tasks)]
    idle = [make_trajectory(number, SEEK, resolved=False, policy="idle") for number in range(tasks)]
    write_run(folder / "arms" / "seeker", seeker)
    write_run(folder / "arms" / "idle", idle)
    by_arm = {
        "idle": [_result("idle", one, 0.0, 0.0) for one in idle],
        "seeker": [_result("seeker", one, 1.0, float(number < 4)) for number, one in enumerate(seeker)],
    }
    if solver:
        by_arm["seeker"] = _repaired(folder, by_arm["seeker"])
    alone = [
        one.model_copy(update={"arm": "no_pack", "trajectory": "", "stop": None, "scores": {"solved": 0.0}})
        for one in by_arm["idle"]
    ]
    all_arms = (("idle", "idle model", by_arm["idle"]), ("seeker", "the seeker", by_arm["seeker"]))
    uplift = [compare(of_arm, alone, "all", "solved", DRAWS) for of_arm in by_arm.values()]
    summary = Summary(
        title="How much does it see?",
        config_hash="c",
        seed=0,
        tasks={"all": tasks, "heldout": tasks // 2, "train": tasks - tasks // 2},
        arms=tuple(
            ArmSummary(
                name=name,
                title=title,
                policy=PolicyInfo(kind=name),
                episodes=len(results),
                seeks=name != "no_pack",
                groups=measures(results, DRAWS),
                per_resolved=per_resolved(results, DRAWS),
                **(CALIBRATED if name == "seeker" else {}),
            )
            for name, title, results in (*all_arms, ("no_pack", "solver alone", alone))
        ),
        comparisons=(*compare_all(by_arm, "idle", DRAWS), *(one for one in uplift if one is not None)),
        baseline="no_pack",
        flaky=(FlakyTask(task_id="shop/luck", passed=2, runs=3),),
        losses=(LossCurve(label="training", points=((1, 3.0), (2, 1.5), (3, 1.0))),),
        solver="models/big, agent" if solver else "",
    )
    results = [one for of_arm in (*by_arm.values(), alone) for one in of_arm]
    (folder / "results.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in results), encoding="utf-8")
    (folder / "summary.json").write_text(summary.model_dump_json(indent=2), encoding="utf-8")
    return folder


def _repaired(folder: Path, results: Sequence[Result]) -> list[Result]:
    """What a solver made of the packs: the first four tasks are repaired, the fifth wrongly, the last not at all."""
    episodes = [make_trajectory(number, REPAIR, resolved=number < 4, policy="big") for number in range(len(results))]
    write_run(folder / "solver" / "seeker", episodes)
    spent = {"solver_steps": 3.0, "solver_tokens": 1120.0, "solver_cost": 0.02, "solver_seconds": 2.5}
    ends = {4: (WRONG, "1 still fail: test_cart.py::test_total"), 5: ("", "no patch")}
    repaired: list[Result] = []
    for number, (result, episode) in enumerate(zip(results, episodes, strict=True)):
        patch, tests = ends.get(number, (GOLD, "4 tests pass"))
        update = {"solver": episode.id, "scores": {**result.scores, **spent}, "patch": patch, "tests": tests}
        repaired.append(result.model_copy(update=update))
    return repaired


def _result(arm: str, trajectory: Trajectory, recall: float, solved: float) -> Result:
    return Result(
        arm=arm,
        task_id=trajectory.task.id,
        sample=0,
        split=trajectory.task.tags["split"],
        trajectory=trajectory.id,
        stop=trajectory.stop,
        scores={"line_recall": recall, "solved": solved, "steps": float(len(trajectory.steps))},
        tags=trajectory.task.tags,
    )


def write_everything(folder: Path, episodes: int = 30) -> Path:
    """`traces`, `dataset`, `eval` and `tasks`, as a demo leaves them."""
    traces = [make_trajectory(number, resolved=number % 3 != 0) for number in range(episodes)]
    traces.append(make_trajectory(0, SEEK, resolved=False, policy="other", said="A needle in the haystack."))
    run = write_run(folder / "traces", traces)
    export_runs([run], folder / "dataset", unresolved=True, test_share=0.3)
    write_evaluation(folder / "eval")
    write_taskset(folder / "tasks", [make_task(number) for number in range(episodes)])
    return folder
