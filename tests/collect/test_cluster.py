"""`runner: ray`: the same run folder as with threads, also when a node dies."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.collect.run.cluster import Host
from gumshoe.errors import SandboxError
from gumshoe.records import StopReason, ToolCall
from support.collect.ray_cluster import two_nodes
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import make_task

Make = Callable[..., Path]
TASKS = 4


def collect(config: Path, *more: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "gumshoe", "collect", str(config), *more]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def stories(run: Path) -> dict[str, list[str]]:
    return {
        found.id: [f"{step.completion.text} {step.tool_calls}" for step in found.steps]
        for found in read_trajectories(run)
    }


def in_flight(run: Path) -> int:
    """Episodes whose first completion is on disk."""
    return sum(b'"completion"' in path.read_bytes() for path in (run / "journal").glob("*.jsonl"))


def test_a_node_that_dies_loses_nothing_but_the_steps_in_flight(config_file: Make, tmp_path: Path) -> None:
    config = config_file(TASKS, workers=4, limits={"command_timeout_s": 250})
    check, gate = tmp_path / "tasks" / "repo" / "check.py", tmp_path / "gate"
    # No episode goes on before all four workers have one and a node has died.
    wait = f"import os, time\n\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.05)\n"
    check.write_text(wait + check.read_text(), encoding="utf-8")
    run, smooth = tmp_path / "run", tmp_path / "smooth"
    with two_nodes() as nodes:
        process = collect(config, "-p", "runner=ray", "-p", f"ray.address={nodes.address}")
        deadline = time.monotonic() + 120
        while in_flight(run) < 4:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        nodes.kill_second()
        gate.touch()
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert f"{TASKS} of {TASKS} episodes" in out
    assert main(["collect", str(config), "-p", f"out={smooth}"]) == 0
    found = list(read_trajectories(run))
    assert Counter(one.task.id for one in found) == {f"shop/{number}": 1 for number in range(TASKS)}
    assert all(one.resolved for one in found)
    assert stories(run) == stories(smooth)
    failures = list(read_failures(run))
    assert {entry["kind"] for entry in failures} == {"SandboxError"}
    assert all("node of this episode is lost" in entry["message"] for entry in failures)
    assert "replays" in (run / "run.log").read_text()
    assert list((run / "journal").iterdir()) == []


def test_without_a_cluster_at_the_address_it_says_so(config_file: Make) -> None:
    process = collect(config_file(1), "-p", "runner=ray", "-p", "ray.address=127.0.0.1:9")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 2, err
    assert err.startswith("gumshoe collect: no Ray cluster responds at ray.address 127.0.0.1:9")
    assert err.count("\n") == 1


def test_a_host_plays_one_episode_after_the_other(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 3)
    host = Host()
    with pytest.raises(SandboxError, match="no episode in progress"):
        host.call("patch")
    options = {"tools": ("view", "rewrite", "submit"), "trusted": True, "oracle": oracle}
    for _ in range(2):
        host.reset(task, {**options, "sandbox": LOCAL}, 1)
        info = host.call("describe")
        assert set(info.decisions) == {"view", "rewrite", "submit"}
        assert info.sandbox == "local"
        assert host.call("patch") == ""
    fix: dict[str, Any] = {"path": "shop.py", "code": "        total = total - 10", "start": 7}
    *_, info = host.call("step", ToolCall(id="1", name="rewrite", arguments=fix))
    assert info["stop"] is None
    assert host.call("verify").resolved
    assert "total - 10" in host.call("patch")
    _, reward, _, _, info = host.call("step", ToolCall(id="2", name="submit"))
    assert (info["stop"], reward, info["verdict"].resolved) == (StopReason.SUBMITTED, 1.0, True)
    host.shutdown()
    with pytest.raises(SandboxError, match="no episode in progress"):
        host.call("verify")


def test_collecting_imports_no_ray() -> None:
    code = "import sys, gumshoe.collect, gumshoe.collect.commands.collect; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
