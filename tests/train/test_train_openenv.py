"""`gumshoe openenv`: OpenEnv's own validator and client, many sessions, and TRL's GRPO through it."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from gumshoe.errors import ConfigError
from support.sandboxes.processes import descendants, state
from support.shop_tasks import make_taskset

pytest.importorskip("openenv", reason="needs the extra: pip install 'gumshoe-debug[openenv]'")
from datasets import Dataset
from openenv.core.generic_client import GenericEnvClient
from transformers import AutoTokenizer
from trl.chat_template_utils import add_response_schema
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from gumshoe.eval.live import LiveEpisodes
from gumshoe.eval.openenv import DebugAction, DebugEnvironment, OpenEnvConfig, make_app

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.filterwarnings("ignore")]

REPORT = {
    "locations": [{"path": "ledger/rates.py", "start": 28, "end": 28}],
    "findings": [{"fact": 1, "claim": "a test fails"}],
    "hypothesis": "the decimals of the wrong currency",
}


@pytest.fixture(scope="module")
def server() -> Generator[str]:
    """One server for all sessions; nothing of it is left at the end."""
    options = ["-p", "sandbox.kind=bubblewrap", "-p", "sessions=4"]
    argv = [sys.executable, "-m", "gumshoe", "openenv", "casebook", "--port", "0", *options]
    with subprocess.Popen(
        argv, stderr=subprocess.PIPE, text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    ) as one:
        assert one.stderr is not None
        try:
            yield one.stderr.readline().split()[2]
        finally:
            started = descendants(one.pid)
            one.send_signal(signal.SIGTERM)
            assert one.wait(60) == 0
            assert all(state(pid) in {"Z", ""} for pid in started)


def test_openenv_finds_nothing_wrong(server: str) -> None:
    argv = [sys.executable, "-m", "openenv.cli", "validate", "--url", server, "--timeout", "60"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verdict: PASS" in done.stdout


def test_sessions_are_episodes_of_their_own(server: str) -> None:
    with GenericEnvClient(base_url=server).sync() as one, GenericEnvClient(base_url=server).sync() as other:
        begun = one.reset(task="casebook/ledger")
        assert begun.observation["messages"][0]["role"] == "system"
        assert "eval" in [tool["function"]["name"] for tool in begun.observation["tools"]]
        other.reset(task="casebook/grid_path")
        assert "2 failed" in one.step({"tool": "eval"}).observation["text"]
        written = '<tool_call>\n{"name": "view", "arguments": {"path": "gridpath/grid.py"}}\n</tool_call>'
        assert "class Grid" in other.step({"text": written}).observation["text"]
        assert one.step({"tool": "viw"}).observation["failed"]
        assert "called no tool" in other.step({"text": "I think so."}).observation["text"]
        ended = one.step({"tool": "report", "arguments": REPORT})
        assert ended.done
        assert ended.observation["stop"] == "reported"
        assert ended.observation["scores"]["line_f1"] == 1.0
        assert ended.reward is not None
        assert ended.reward > 1.0
        assert one.state()["task"] == "casebook/ledger"


def test_a_weight_of_no_score_is_refused() -> None:
    settings = {"tasks": {"source": "casebook"}, "sandbox": {"kind": "bubblewrap"}, "weights": {"line_fl": 1.0}}
    with pytest.raises(ConfigError, match="there is no score 'line_fl'; the scores are cost, format"):
        make_app(OpenEnvConfig.model_validate(settings))


def test_a_sandbox_that_breaks_or_does_not_start_ends_the_episode_without_a_reward(tmp_path: Path) -> None:
    tasks = make_taskset(tmp_path / "tasks", 1, runner="pytest")
    config = OpenEnvConfig.model_validate({"tasks": {"source": str(tasks)}, "sandbox": {"kind": "bubblewrap"}})
    session = DebugEnvironment(LiveEpisodes(config), config, itertools.count())
    before = descendants(os.getpid())
    try:
        assert not session.reset().done
        for pid in descendants(os.getpid()) - before:
            os.kill(pid, signal.SIGKILL)
        ended = session.step(DebugAction(tool="eval"))
        assert (ended.done, ended.reward, ended.stop, ended.failed) == (True, None, "aborted", True)
        assert not session.reset().done
        shutil.rmtree(tasks)
        ended = session.reset()
        assert (ended.done, ended.reward, ended.stop) == (True, None, "aborted")
        assert ended.text
    finally:
        session.close()


class Ledger:
    """One episode through the server, as TRL drives it: public methods are tools."""

    url = ""
    rewards: list[float] = []  # noqa: RUF012 - filled by all instances

    def __init__(self) -> None:
        self._client = GenericEnvClient(base_url=self.url).sync()
        self._result: Any = None

    def reset(self, **row: Any) -> str:
        del row
        self._result = self._client.reset(task="casebook/ledger")
        return ""

    def view(self, path: str) -> str:
        """Show a file.

        Args:
            path: the file
        """
        return self._step("view", path=path)

    def get_reward(self) -> float:
        if not self._result.done:
            self._step("report", **{**REPORT, "findings": []})  # The model may have seen no fact.
        self.rewards.append(float(self._result.reward))
        return self.rewards[-1]

    def _step(self, tool: str, **arguments: Any) -> str:
        if not self._result.done:
            self._result = self._client.step({"tool": tool, "arguments": arguments})
        return str(self._result.observation["text"])


def test_grpo_of_trl_trains_through_it(server: str, caller: Path, tmp_path: Path) -> None:
    Ledger.url = server
    tokenizer: Any = AutoTokenizer.from_pretrained(caller)
    rows = [{"prompt": [{"role": "user", "content": "Transfers to a yen account are wrong."}]}] * 2
    trainer = GRPOTrainer(
        model=str(caller),
        args=GRPOConfig(
            output_dir=str(tmp_path),
            num_generations=2,
            per_device_train_batch_size=2,
            max_steps=1,
            max_completion_length=100,
            max_tool_calling_iterations=2,
            use_cpu=True,
            report_to=[],
            logging_steps=1,
            save_strategy="no",
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=add_response_schema(tokenizer),
        environment_factory=Ledger,
    )
    trainer.train()
    assert trainer.state.global_step == 1
    assert len(Ledger.rewards) == 2
    assert all(reward > 0 for reward in Ledger.rewards)
