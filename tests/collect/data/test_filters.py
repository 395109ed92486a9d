"""The rules of `gumshoe filter`, and the command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.commands.runs import summarize
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.filters import make_rule
from gumshoe.collect.data.store import RunFolder, read_trajectories
from gumshoe.errors import ConfigError
from gumshoe.records import (
    Check,
    Completion,
    ContextPack,
    Finding,
    Observation,
    Score,
    Step,
    StopReason,
    TaskRef,
    ToolCall,
    ToolSchema,
    Trajectory,
)
from support.collect.small_trajectories import trajectory, write_run
from support.shop_tasks import make_taskset

REWRITE = (ToolSchema(name="rewrite", description="", parameters={}),)


def step(index: int, tool: str, answer: str = "x", **arguments: Any) -> Step:
    return Step(
        index=index,
        message_index=index,
        completion=Completion(text="", tool_calls=(ToolCall(id="c", name=tool, arguments=arguments),)),
        observations=(Observation(tool=tool, text=answer),),
    )


def ref(task: str = "t", **tags: str) -> TaskRef:
    return TaskRef(id=task, hash="h", source="s", regime="debug", tags=tags)


def keeps(rule: str, *cases: Trajectory) -> list[bool]:
    made = make_rule(rule)
    for case in cases:
        if made.survey is not None:
            made.survey(case)
    return [made.keeps(case) for case in cases]


def scored(value: float | None, **changes: Any) -> Trajectory:
    return trajectory(tools=REWRITE, scores=(Score(name="resolved", value=value),), **changes)


def test_the_rule_keeps_what_status_counts_as_resolved(tmp_path: Path) -> None:
    reported = trajectory(stop=StopReason.REPORTED)
    cases = (scored(1.0), scored(0.0), scored(None), reported, trajectory())
    assert keeps("resolved", *cases) == [True, False, False, True, False]
    counts = summarize(write_run(tmp_path / "run", *cases))
    assert [counts[name] for name in ("resolved", "reported", "not_resolved", "unknown")] == [2, 1, 1, 2]


def test_loops_are_the_same_call_with_the_same_answer() -> None:
    same = trajectory(steps=tuple(step(number, "view", path="a") for number in range(3)))
    new_answers = trajectory(steps=tuple(step(number, "eval", str(number)) for number in range(3)))
    assert keeps("loops", same, new_answers) == [False, True]
    assert keeps("loops=4", same) == [True]


def test_grounded() -> None:
    telling = Check(status="confirmed", telling=True)
    ordinary = Check(status="confirmed", telling=False)

    def reported(*checks: Check | None) -> Trajectory:
        findings = tuple(Finding(claim="", step=0, quote="q", check=check) for check in checks)
        return trajectory(context_pack=ContextPack(findings=findings))

    cases = (reported(telling), reported(telling, ordinary), reported(None), reported(), trajectory())
    assert keeps("grounded", *cases) == [True, False, False, True, True]
    assert keeps("grounded=0.5", *cases) == [True, True, False, True, True]


@pytest.mark.parametrize(
    ("command", "leaks"),
    [
        ("git log -1 --format=%H", True),
        ("cd x && git -C . show HEAD~1", True),
        ("cat .git/packed-refs", True),
        ("ls /w/.git", True),
        ("cat ../oracles.jsonl", True),
        ("git status", False),
        ("cat .gitignore", False),
        ("echo digital logs", False),
        ("python -m pytest", False),
    ],
)
def test_leakage(command: str, leaks: bool) -> None:
    assert keeps("leakage", trajectory(steps=(step(0, "bash", command=command),))) == [not leaks]
    assert keeps("leakage", trajectory(steps=(step(0, "x", deep={"a": [1, command]}),))) == [not leaks]


def test_duplicates_keep_the_first_of_those_that_make_the_same_change_wherever_it_is() -> None:
    first = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-    a = 1\n+    a = 2\n b\n"
    moved = "--- a/y.py\n+++ b/y.py\n@@ -9,2 +9,2 @@\n-  a =  1\n+  a = 2\n c\n"
    other = first.replace("a = 2", "a = 3")
    cases = [trajectory(patch=text) for text in (first, moved, other, first)]
    assert keeps("duplicates", *cases) == [True, False, True, False]
    assert keeps("duplicates=2", *cases) == [True, True, True, False]
    looks = [trajectory(steps=(step(0, "view", path=path),)) for path in ("a", "a", "b")]
    assert keeps("duplicates", *looks) == [True, False, True]


def test_pass_rate_is_by_task() -> None:
    tasks = [("always", 1), ("always", 1), ("half", 1), ("half", 0), ("never", 0)]
    cases = [scored(value, task=ref(task)) for task, value in tasks]
    assert keeps("pass_rate=0.1..0.9", *cases) == [False, False, True, True, False]


def test_best_keeps_one_episode_of_each_task() -> None:
    def of(task: str, number: int, value: float | None, name: str = "line_f1") -> Trajectory:
        return trajectory(id=f"{task}/{number}", task=ref(task), scores=(Score(name=name, value=value),))

    cases = [of("a", 0, 0.25), of("a", 1, 0.5), of("a", 2, 0.5), of("b", 0, 0.0), of("b", 1, None)]
    assert keeps("best", *cases) == [False, True, False, True, False]
    assert keeps("best=0.3", *cases) == [False, True, False, False, False]
    assert keeps("best", of("c", 0, 0.0, "resolved"), of("c", 1, 1.0, "resolved")) == [False, True]


def test_exclude_reads_task_sets_and_lists(tmp_path: Path) -> None:
    cases = [trajectory(task=ref(project=project)) for project in ("shop0", "shop1", "shop2")]
    folder = make_taskset(tmp_path / "set", 1)
    (tmp_path / "list.txt").write_text("shop1\n\nshop0\n")
    assert keeps(f"exclude={folder}", *cases) == [False, True, True]
    assert keeps(f"exclude={tmp_path / 'list.txt'}", *cases) == [False, False, True]
    with pytest.raises(ConfigError, match="cannot be read"):
        make_rule("exclude=nowhere")


def test_scored_keeps_what_an_evaluation_measured_well(tmp_path: Path) -> None:
    def row(arm: str, number: int, **scores: float | None) -> str:
        return json.dumps({"arm": arm, "trajectory": f"t{number}", "scores": scores}) + "\n"

    rows = [row("model", 0, hit=1.0), row("model", 1, hit=0.4), row("model", 2, hit=None), row("other", 1, hit=1.0)]
    (tmp_path / "results.jsonl").write_text("".join(rows))
    arm = tmp_path / "arms" / "model"
    assert keeps(f"scored={arm}:hit:0.5", *(trajectory(id=f"t{number}") for number in range(4))) == [True] + [False] * 3
    for wrong, said in (
        (f"{arm}:hits:1", r"has no metric 'hits', but hit$"),
        (f"{tmp_path / 'arms' / 'nobody'}:hit:1", "but none at all"),
        (f"{tmp_path}:hit:1", r"results\.jsonl"),
    ):
        with pytest.raises(ConfigError, match=said):
            make_rule(f"scored={wrong}")
    (tmp_path / "results.jsonl").write_text('{"arm": "model"}\n')
    with pytest.raises(ConfigError, match="trajectory"):
        make_rule(f"scored={arm}:hit:1")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("nothing", r"unknown rule 'nothing'; known: .*resolved, scored=ARM:NAME:X, unseen"),
        ("scord=1", r"unknown rule 'scord'; did you mean 'scored'\?"),
        ("scored", "give scored=ARM:NAME:X"),
        ("exclude", "give exclude=PATH"),
        *((rule, "cannot be read") for rule in ("loops=many", "pass_rate=3", "best=most", "scored=hit")),
        ("pass_rate=0.9..0.1", r"no share is between 0\.9 and 0\.1"),
        *((f"{rule}nan", "cannot be read") for rule in ("pass_rate=0..", "grounded=", "best=", "scored=arm:hit:")),
    ],
)
def test_wrong_rules_are_told(rule: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_rule(rule)


def test_the_command_writes_a_run_and_its_account(
    tmp_path: Path,
    config: Callable[..., CollectConfig],
    run_here: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        for number in range(4):
            folder.add(scored(float(number % 2), id=f"t{number}", steps=(step(0, "eval"),) * number))
    out = tmp_path / "good"
    argv = ["filter", str(tmp_path / "run"), "--out", str(out)]
    wrong = run_here(*argv)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    done = run_here(*argv, "--rule", "resolved", "--rule=loops=2")
    assert "1 of 4 kept" in done.stdout
    assert [found.id for found in read_trajectories(out)] == ["t1"]
    assert json.loads((out / "filter.json").read_text())["dropped"] == {"resolved": 2, "loops=2": 1}
    again = run_here(*argv, "--rule", "resolved")
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


@pytest.mark.parametrize("tail", [b"", b'{"id'])
def test_a_run_without_an_episode_is_refused(tail: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = tmp_path / "run", tmp_path / "out"
    run.mkdir()
    (run / "trajectories.jsonl").write_bytes(tail)
    assert main(["filter", str(run), "--rule", "unseen", "--out", str(out)]) == 2
    assert "no finished episode in" in capsys.readouterr().err
    assert not out.exists()
