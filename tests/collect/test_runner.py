"""Runs of many episodes: failures, budgets, samples, progress and how they end."""

from __future__ import annotations

import io
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import pytest

from gumshoe.cli import main
from gumshoe.collect.commands.collect import ProgressDisplay, collect
from gumshoe.collect.config import BudgetConfig, CollectConfig
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.collect.run.control import Control, Interrupted
from gumshoe.collect.run.runner import CALLS_PER_CORE, TakesTurns, plan_episodes
from gumshoe.console import Console
from gumshoe.errors import PolicyError, TaskError
from gumshoe.records import Score, StopReason, Usage
from support.collect.small_trajectories import trajectory
from support.provider_server import Answer, Handler, chat, fault, provider

Make = Callable[..., CollectConfig]
MakeFile = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]
SUBMIT = chat("[submit 0.1] I give up.", [("submit", {})])


def model_at(url: str) -> dict[str, Any]:
    """The policy of a model behind `url`."""
    return {"kind": "openai", "model": "m", "base_url": url, "retry": {"attempts": 1, "first_s": 0.0}}


def test_what_the_infrastructure_failed_is_tried_again_and_kept_apart(config: Make) -> None:
    with provider(fault(500), SUBMIT) as server:
        made = config(1, policy=model_at(server.url))
        result = collect(made)
    assert (result.finished, result.gave_up, result.stopped) == (1, 0, None)
    assert [entry["kind"] for entry in read_failures(Path(made.out))] == ["PolicyError"]
    assert len(list(read_trajectories(Path(made.out)))) == 1


def test_an_episode_is_given_up_after_three_failures(config_file: MakeFile, tmp_path: Path, run_here: Run) -> None:
    def only_the_first_task(handler: Handler, body: dict[str, Any]) -> None:
        answer = fault(500) if "get 11 off" in str(body["messages"]) else SUBMIT
        answer(handler, body)

    with provider(only_the_first_task) as server:
        file = config_file(3, policy=model_at(server.url), workers=1)
        for _ in range(2):
            done = run_here("collect", str(file))
            assert done.returncode == 1
            assert "2 of 3 episodes in" in done.stdout
            assert "1 given up, now or earlier" in done.stdout
            assert "the last failure: PolicyError: " in done.stdout
            assert len(server.requests) == 2 + 3
    assert len(list(read_failures(tmp_path / "run"))) == 3


def test_when_every_attempt_fails_the_run_stops_with_the_reason(config: Make) -> None:
    with provider(fault(503, "down for maintenance")) as server:
        made = config(50, policy=model_at(server.url))
        with pytest.raises(PolicyError, match="down for maintenance"):
            collect(made)
        assert len(server.requests) < 10


def failing(config: Make, *tasks: str, **changes: object) -> CollectConfig:
    policy = {"kind": "custom", "path": "support.collect.policies:Failing", "options": {"tasks": list(tasks)}}
    return config(3, policy=policy, workers=1, **changes)


def test_an_error_nobody_foresaw_ends_its_episode_and_no_other(config: Make) -> None:
    made = failing(config, "shop/0", attempts=2)
    result = collect(made)
    assert (result.finished, result.gave_up, result.stopped) == (2, 1, None)
    failures = list(read_failures(Path(made.out)))
    assert [entry["kind"] for entry in failures] == ["ZeroDivisionError"] * 2
    assert "policies.py" in failures[0]["traceback"]
    assert failures[0]["traceback"].endswith("ZeroDivisionError: integer division or modulo by zero\n")


def test_a_run_may_stop_after_some_failures(config: Make, config_file: MakeFile) -> None:
    made = failing(config, "shop/0", "shop/1", "shop/2")
    file = config_file(3, policy=made.policy.model_dump(), workers=1)
    assert main(["collect", str(file), "-p", "fail_on_error=2"]) == 1
    assert len(list(read_failures(Path(made.out)))) == 2
    assert main(["collect", str(file), "-p", "policy.options.tasks=[]"]) == 2, "another policy is another run"
    assert main(["collect", str(file)]) == 1
    assert len(list(read_failures(Path(made.out)))) == 9


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        pytest.param(chat("no call"), StopReason.NO_TOOL_CALL, id="no-call"),
        pytest.param(fault(400, "maximum context length"), StopReason.CONTEXT_OVERFLOW, id="overflow"),
    ],
)
def test_what_the_model_failed_is_a_trajectory(config: Make, answer: Answer, stop: StopReason) -> None:
    with provider(answer) as server:
        made = config(1, policy=model_at(server.url))
        assert collect(made).finished == 1
    (found,) = read_trajectories(Path(made.out))
    assert (found.stop, found.resolved) == (stop, False)


def test_the_runs_budget_stops_cleanly_and_a_larger_one_goes_on(
    config_file: MakeFile, tmp_path: Path, run_here: Run
) -> None:
    with provider(chat("x", [("eval", {})]), SUBMIT) as server:
        file = str(config_file(4, policy=model_at(server.url), workers=1))
        small = run_here("collect", file, "-p", "budget.tokens=250")
        assert (small.returncode, "the budget of tokens is used up; run" in small.stdout) == (0, True)
        assert len(server.requests) < 5
        larger = run_here("collect", file, "-p", "budget.tokens=10000")
        assert (larger.returncode, "4 of 4 episodes" in larger.stdout) == (0, True)
        assert len(server.requests) == 5
    assert len({found.id for found in read_trajectories(tmp_path / "run")}) == 4


def test_samples_differ_by_seed_and_id(config: Make) -> None:
    made = config(2)
    made = made.model_copy(update={"tasks": made.tasks.model_copy(update={"samples": 3})})
    episodes = plan_episodes(made, "run")
    assert len({episode.id for episode in episodes}) == len({episode.seed for episode in episodes}) == 6
    assert [episode.sample for episode in episodes] == [0, 0, 1, 1, 2, 2]
    assert plan_episodes(made, "run")[3].id == episodes[3].id
    assert plan_episodes(made, "other")[3].id != episodes[3].id


def test_filters_and_order(config: Make) -> None:
    def ids(**changes: object) -> list[str]:
        made = config(6)
        tasks = made.tasks.model_copy(update=changes)
        return [episode.task.id for episode in plan_episodes(made.model_copy(update={"tasks": tasks}), "")]

    assert ids(tags={"project": "shop1"}) == ["shop/1", "shop/4"]
    assert ids(tags={"project": ("shop1", "shop2")}, limit=3) == ["shop/1", "shop/2", "shop/4"]
    assert ids(ids=("shop/5",)) == ["shop/5"]
    assert sorted(ids(shuffle=True)) == ids()
    assert ids(shuffle=True) == ids(shuffle=True) != ids()
    with pytest.raises(TaskError, match="relax"):
        ids(tags={"project": "none"})


def test_control_counts_and_stops() -> None:
    control = Control(BudgetConfig(tokens=10, cost_usd=1.0, wall_s=50.0))
    control.check()
    control.count_completion(Usage(prompt_tokens=5, cost_usd=0.5))
    assert control.exhausted is None
    control.count_completion(Usage(completion_tokens=5))
    assert control.exhausted == "tokens"
    with pytest.raises(Interrupted):
        control.check()
    assert Control(BudgetConfig(wall_s=1e-9)).exhausted == "wall_s"


def test_progress_on_a_terminal_and_off_it() -> None:
    control = Control()
    control.count_completion(Usage(prompt_tokens=10, cost_usd=0.25))
    control.begin_turn("worker 1", "shop/1 step 3: eval")
    control.count_failure()
    done = trajectory(scores=(Score(name="resolved", value=1.0),))
    plain = io.StringIO()
    with ProgressDisplay(4, 1, control, Console(file=plain, highlight=False)) as display:
        display.done(done, True)
        display.tick()
        assert plain.getvalue() == ""
        control.finish()
        display.tick()
        display.tick()
    assert plain.getvalue() == "finishing the episodes at hand; Ctrl-C again stops at once\n"
    for part in ("1 of 1 resolved", "$0.25", "failed tries: 1"):
        assert part in display.line()
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, _environ={"TERM": "xterm"})
    with ProgressDisplay(4, 1, control, console) as display:
        display.done(done, True)
        display.tick()
    for part in ("2/4", "Ctrl-C again", "shop/1 step 3: eval"):
        assert part in screen.getvalue()


class _Busy(gymnasium.Env[int, int]):
    """Notes how many like it work at the same time."""

    working: ClassVar[list[int]] = []
    most: ClassVar[list[int]] = []

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.working.append(action)
        self.most.append(len(self.working))
        time.sleep(0.02)
        self.working.pop()
        return 0, 0.0, False, False, {}


def test_no_more_environments_work_at_once_than_the_cores_can_serve() -> None:
    limit = CALLS_PER_CORE * (os.cpu_count() or 1)
    with ThreadPoolExecutor(3 * limit) as threads:
        list(threads.map(TakesTurns(_Busy()).step, range(5 * limit)))
    assert max(_Busy.most) == limit
