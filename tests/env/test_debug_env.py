"""The environment as Gymnasium sees it, over real sandboxes."""

import functools
import math
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AsyncVectorEnv

from gumshoe.env import ENV_ID, DebugEnv, SandboxConfig
from gumshoe.env.spaces import action_space, tool_call
from gumshoe.errors import SandboxError
from gumshoe.records import Limits, StopReason, Task, ToolCall
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import CHEAPEST, make_local_env
from support.small_projects import ADDING

pytestmark = pytest.mark.needs("bubblewrap")

TOOLS = ["listdir", "view", "grep", "eval", "rewrite", "report", "submit"]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return folder_task(tmp_path / "repo", ADDING, problem_statement="add(2, 3) is -1.", readonly=("test_*.py",))


@contextmanager
def reset(
    task: Task, tools: list[str] = TOOLS, sandbox: SandboxConfig = CHEAPEST, **options: Any
) -> Generator[DebugEnv]:
    """An environment at the start of an episode."""
    with closing(DebugEnv(task, tools=tools, sandbox=sandbox, trusted=True, **options)) as env:
        env.reset(seed=0)
        yield env


@pytest.fixture
def env(task: Task) -> Iterator[DebugEnv]:
    with reset(task) as env:
        yield env


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=arguments)  # type: ignore[arg-type]


FIX = call("rewrite", path="calc.py", start=2, end=2, code="    return a + b")


def test_it_passes_gymnasiums_own_check(task: Task) -> None:
    with closing(gymnasium.make(ENV_ID, task=task, tools=TOOLS, sandbox=CHEAPEST, trusted=True)) as made:
        assert made.spec is not None
        assert not made.spec.nondeterministic, "check_env would leave its tests of determinism out"
        check_env(made.unwrapped)


def test_the_same_calls_lead_to_the_same_observations_rewards_and_infos(env: DebugEnv) -> None:
    calls = (call("eval"), call("view", path="calc.py"), call("bash", command="sleep 0.01; echo x"), FIX, call("eval"))

    def play() -> list[object]:
        return [env.reset(seed=1), *(env.step(one) for one in calls)]

    first, second = play(), play()
    for one, other in zip(first, second, strict=True):
        assert data_equivalence(one, other, exact=True)


def test_without_eval_on_submit_nobody_judges(task: Task) -> None:
    with reset(task, eval_on_submit=False, render_mode="ansi") as env:
        assert env.render() == task.problem_statement
        env.step(FIX)
        _, reward, terminated, _, info = env.step(call("submit"))
    assert (math.isnan(reward), terminated, info["stop"]) == (True, True, StopReason.SUBMITTED)
    assert "verdict" not in info


def test_a_repair_that_makes_the_tests_pass_is_rewarded_when_submitted(env: DebugEnv, task: Task) -> None:
    observation, info = env.reset(seed=0)
    assert observation == {"text": "add(2, 3) is -1.", "failed": 0}
    assert info["stop"] is None
    _, reward, terminated, truncated, _ = env.step(FIX)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert "+    return a + b" in env.patch()
    _, reward, terminated, truncated, info = env.step(call("submit"))
    assert (reward, terminated, truncated, info["stop"]) == (1.0, True, False, StopReason.SUBMITTED)
    env.reset(seed=0)
    assert env.patch() == ""
    assert env.workspace.read_text("calc.py") == ADDING["calc.py"]
    assert Path(str(task.workspace.path), "calc.py").read_text() == ADDING["calc.py"]


def test_overwriting_the_tests_is_refused_and_submitting_the_bug_is_not_rewarded(env: DebugEnv) -> None:
    observation, *_ = env.step(call("rewrite", path="test_calc.py", code="def test_add():\n    pass\n"))
    assert observation["failed"] == 1
    assert env.step(call("submit"))[1] == 0.0


def test_a_report_that_can_be_read_ends_the_episode_and_hands_over_its_pack(env: DebugEnv) -> None:
    observation, _, terminated, _, info = env.step(call("report", locations="everywhere"))
    assert (observation["failed"], terminated, info["stop"]) == (1, False, None)
    report = call("report", locations=[{"path": "calc.py", "start": 2, "end": 2}], findings=[], hypothesis="sign")
    _, reward, terminated, _, info = env.step(report)
    assert (reward, terminated, info["stop"]) == (0.0, True, StopReason.REPORTED)
    assert info["context_pack"].locations[0].path == "calc.py"


@pytest.mark.parametrize(
    ("limits", "calls", "stop"),
    [
        (Limits(steps=1), 10, StopReason.CALL_LIMIT),
        (Limits(steps=40, calls=10), 10, StopReason.CALL_LIMIT),
        (Limits(wall_s=1e-9), 1, StopReason.WALL_LIMIT),
    ],
)
def test_a_limit_truncates(task: Task, limits: Limits, calls: int, stop: StopReason) -> None:
    """Ten calls for each turn that is allowed, unless configured otherwise."""
    limited = task.model_copy(update={"limits": limits})
    with reset(limited) as env:
        for _ in range(calls - 1):
            assert env.step(call("listdir"))[3] is False
        _, _, terminated, truncated, info = env.step(call("listdir"))
        assert (terminated, truncated, info["stop"]) == (False, True, stop)
        with pytest.raises(SandboxError, match="reset"):
            env.step(call("listdir"))


def test_an_element_of_the_action_space_is_an_action_and_nothing_else_is(env: DebugEnv) -> None:
    action = (TOOLS.index("view"), {"path": "calc.py", "start": 1, "end": 2})
    observation, *_ = env.step(action)
    assert "return a - b" in observation["text"]
    assert env.observation_space.contains(observation)
    for other in ((99, {}), "view", (0, None), ("one", {})):
        observation, _, terminated, _, info = env.step(other)  # type: ignore[arg-type]
        assert (observation["failed"], terminated) == (1, False)
        assert info["observation"].failure is not None
    env.action_space.seed(0)
    for _ in range(20):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()


def test_a_sample_of_listed_values_is_one_of_them() -> None:
    class Paint:
        name = "paint"
        parameters: ClassVar = {"properties": {"color": {"type": "string", "enum": ["red", "green"]}}}

    space = action_space([Paint()])  # type: ignore[list-item]
    space.seed(0)
    colors = {tool_call(space.sample(), [Paint()], "1").arguments["color"] for _ in range(20)}  # type: ignore[list-item]
    assert colors == {"red", "green"}
    assert tool_call((0, {"color": "red"}), [Paint()], "1").arguments == {"color": "red"}  # type: ignore[list-item]


def test_closing_twice_is_harmless_and_ends_it(env: DebugEnv) -> None:
    for access in (env.restore, env.is_whole):
        with pytest.raises(SandboxError, match="the snapshot cannot be used"):
            access("nothing")
    env.close()
    env.close()
    with pytest.raises(SandboxError, match="reset"):
        _ = env.workspace


def test_gymnasiums_vector_environments_step_many_and_reset_them_after_their_end(task: Task) -> None:
    with closing(
        AsyncVectorEnv([functools.partial(make_local_env, task, TOOLS)] * 2, shared_memory=False, context="spawn")
    ) as envs:
        observations, _ = envs.reset(seed=7)
        assert observations["text"] == ("add(2, 3) is -1.",) * 2
        envs.step([FIX, FIX])
        _, rewards, terminated, truncated, infos = envs.step([call("submit"), call("listdir")])
        assert rewards.tolist() == [1.0, 0.0]
        assert terminated.tolist() == [True, False]
        assert not truncated.any()
        assert infos["stop"][0] is StopReason.SUBMITTED
        observations, _, terminated, _, _ = envs.step([call("listdir")] * 2)
        assert observations["text"][0] == "add(2, 3) is -1."
        assert "calc.py" in observations["text"][1]
        assert not terminated.any()


def test_a_search_goes_back_to_a_snapshot_and_on_from_there(env: DebugEnv) -> None:
    bug = env.snapshot()
    env.step(FIX)
    repaired = env.snapshot()
    *_, terminated, _, _ = env.step(call("submit"))
    assert terminated
    env.restore(bug)
    assert env.patch() == ""
    observation, _, terminated, _, info = env.step(call("eval"))
    assert not terminated
    assert info["stop"] is None
    assert "1 failed" in observation["text"]
    *_, info = env.step(call("submit"))
    assert info["observation"].data["edited"] == []
    env.restore(repaired)
    assert [seen.tool for seen in env.toolbox.history] == ["rewrite"]
    _, reward, terminated, _, info = env.step(call("submit"))
    assert (reward, terminated) == (1.0, True)
    assert info["observation"].data["edited"] == ["calc.py"]


def test_going_back_ends_a_program_that_would_run_stale_code(task: Task) -> None:
    with reset(task, tools=["pdb", "rewrite"]) as env:
        bug = env.snapshot()
        env.step(FIX)
        env.step(call("pdb", command="b calc.py:2\nc"))
        env.restore(bug)
        observation, *_ = env.step(call("pdb", command="c\np a - b"))
        assert "AssertionError: assert -1 == 5" in observation["text"]
        assert "-1" in observation["text"]


def test_a_program_of_which_nothing_was_asked_is_kept_once(task: Task) -> None:
    with reset(task, tools=["pdb", "eval"]) as env:
        env.step(call("pdb", command="b calc.py:2\nc\n!seen = 1"))
        first = env.snapshot()
        env.step(call("eval"))
        second = env.snapshot()
        env.restore(first)
        third = env.snapshot()
        *_, info = env.step(call("pdb", command="cl\nb calc.py:2, a > 9\n!seen = 2"))
        assert len(info["observation"].data["checkpoints"]) == 1
        fourth = env.snapshot()
        early, late = (1, None), (2, "a > 9")
        expected = {first: early, second: early, third: early, fourth: late}
        for name in (third, fourth, second, fourth, first):
            seen, condition = expected[name]
            env.restore(name)
            *_, info = env.step(call("pdb", command="p seen"))
            assert info["observation"].text == f"seen = {seen}"
            assert [each["condition"] for each in info["observation"].data["breakpoints"]] == [condition]
            env.restore(name)
            assert "program ended" in env.step(call("pdb", command="cl\nc\nc"))[0]["text"]


@pytest.mark.parametrize(
    ("patch_mb", "megabytes", "said"),
    [(1, 2, "the files that were changed hold more than 1 MB"), (32, 70, "large.bin")],
)
def test_a_change_that_is_too_large_is_refused_unless_git_ignores_it(
    patch_mb: int, megabytes: int, said: str, task: Task, tmp_path: Path
) -> None:
    (tmp_path / "repo" / ".gitignore").write_text("*.log\n")
    with reset(task, sandbox=CHEAPEST.model_copy(update={"patch_mb": patch_mb})) as env:
        env.step(FIX)
        assert env.sandbox.run(["truncate", "-s", f"{megabytes}M", "large.bin", "large.log"]).exit_code == 0
        _, reward, terminated, truncated, info = env.step(call("submit"))
        assert (reward, terminated, truncated, info["stop"]) == (0.0, False, False, None)
        assert info["observation"].failure.kind == "workspace_damaged"
        assert said in info["observation"].text
        env.sandbox.remove_file("large.bin")
        _, reward, terminated, *_ = env.step(call("submit"))
        assert (reward, terminated) == (1.0, True)
