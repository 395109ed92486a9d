"""Steps that are run again in a fresh sandbox, and what is kept of what was worked out."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.parallel import run_parallel
from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, DatasetError, SandboxError, TaskError
from gumshoe.eval.grading.replays import Recorded, Replays
from gumshoe.records import Task, Trajectory
from support.eval.held_out import make_pair, make_taskset
from support.eval.made import make_pack, make_step, make_trajectory
from support.sandboxes.sandbox_backends import LOCAL

TOOLS = ("view", "eval", "report")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return make_pair(make_taskset(tmp_path / "set", 1) / "repo", 0)[0]


def recorded(task: Task, *quotes: str) -> Recorded:
    """Views line 3 of the shop in step 0 and is refused in step 1; each quote cites step 0."""
    look = make_step(0, "", arguments={"path": "shop.py", "start": 3, "end": 3})
    refused = make_step(1, "", tool="pdb", failure="locked_tool")
    report = make_step(2, "", tool="report")
    pack = make_pack(("shop.py", 3, 3), findings=[(0, quote) for quote in quotes])
    return Recorded("a", task, TOOLS, make_trajectory([look, refused, report], pack, task=task))


def test_findings_count_where_they_are_seen_again(tmp_path: Path, task: Task) -> None:
    right, half = recorded(task, "total - 11"), recorded(task, "total - 11", "total - 10")
    half = Recorded("b", task, TOOLS, half.trajectory)
    silent = Recorded("c", task, TOOLS, make_trajectory([make_step()], task=task))
    replays = Replays(tmp_path / "replays.jsonl", LOCAL)
    replays.run([right, half, silent], Control(), 2)
    assert [replays.share(one) for one in (right, half, silent)] == [1.0, 0.5, None]
    lines = (tmp_path / "replays.jsonl").read_text()
    again = Replays(tmp_path / "replays.jsonl", LOCAL)
    again.run([right, half], Control(), 2)
    assert again.share(half) == 0.5
    assert (tmp_path / "replays.jsonl").read_text() == lines


@pytest.mark.parametrize(("kind", "refused"), [("openai", True), ("replay", True), ("teacher", False)])
def test_a_replay_is_trusted_as_far_as_its_policy(kind: str, refused: bool, tmp_path: Path) -> None:
    task = load_tasks("casebook")[0][0]
    one = recorded(task, "x")
    policy = one.trajectory.policy.model_copy(update={"kind": kind})
    one = Recorded("a", task, TOOLS, one.trajectory.model_copy(update={"policy": policy}))
    replays = Replays(tmp_path / "replays.jsonl", SandboxConfig(kind="local"))
    expected = pytest.raises(ConfigError, match="does not isolate") if refused else nullcontext()
    with expected:
        replays.run([one], Control(), 1)
    assert replays.share(one) == (None if refused else 0.0)


def test_a_task_that_is_gone_cannot_be_replayed(tmp_path: Path, task: Task) -> None:
    spec = task.workspace.model_copy(update={"path": str(tmp_path / "gone")})
    lost = recorded(task.model_copy(update={"workspace": spec}), "x")
    with pytest.raises(TaskError):
        Replays(tmp_path / "replays.jsonl", LOCAL).run([lost], Control(), 1)


def test_what_a_step_without_calls_said_is_not_seen_again(tmp_path: Path, task: Task) -> None:
    silent: Trajectory = make_trajectory(
        [make_step(0, "words", calls=0)], make_pack(findings=[(0, "words")]), task=task
    )
    replays = Replays(tmp_path / "replays.jsonl", LOCAL)
    replays.run([Recorded("a", task, TOOLS, silent)], Control(), 1)
    assert replays.share(Recorded("a", task, TOOLS, silent)) == 0.0


# --- what is kept -------------------------------------------------------------------------------------------------


def test_what_is_kept_is_there_for_the_next_process(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "cache.jsonl"
    cache = JsonlCache(path)
    cache.keep("a", {"value": 1})
    cache.keep("b", {"value": None})
    with path.open("a") as file:
        file.write('{"key": "c", "val')
    again = JsonlCache(path)
    assert [again.get(key) for key in "abc"] == [{"value": 1}, {"value": None}, None]
    again.keep("c", {"value": 3})
    assert JsonlCache(path).get("c") == {"value": 3}


@pytest.mark.parametrize("line", ["[]", "no JSON", '{"value": 1}', '"key"'])
def test_a_line_of_somebody_else_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "memo").write_text(f"{line}\n")
    with pytest.raises(DatasetError, match=r"memo line 1.*remove the file"):
        JsonlCache(tmp_path / "memo")


def test_a_digest_is_of_what_is_in_it() -> None:
    assert digest("a", {"x": 1, "y": 2}) == digest("a", {"y": 2, "x": 1})
    assert digest("a", "b") != digest("ab")


def test_jobs_are_worked_off_once_each_and_the_first_error_is_told() -> None:
    done: list[int] = []
    ticks: list[int] = []
    run_parallel(range(20), done.append, workers=4, control=Control(), on_tick=lambda: ticks.append(1))
    assert sorted(done) == list(range(20))

    def fail(job: int) -> None:
        raise (SandboxError("broken") if job else ValueError("ours"))

    with pytest.raises(SandboxError, match="broken"):
        run_parallel([1], fail, workers=1, control=Control())
    with pytest.raises(ValueError, match="ours"):
        run_parallel([0], fail, workers=1, control=Control())
    stopped = Control()
    stopped.finish()
    run_parallel([0], fail, workers=1, control=stopped)
    run_parallel([], fail, workers=3, control=Control())
