"""`gumshoe collect` as a process: resumed after SIGKILL, stopped by Ctrl-C, refusing wrong input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.commands.runs import summarize
from gumshoe.collect.data.journal import comparable
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.collect.run.cluster import Host
from gumshoe.errors import SandboxError
from gumshoe.records import Score, StopReason, ToolCall, Trajectory
from gumshoe.storage import read_records, write_jsonl
from support.provider_server import Handler, chat, provider
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import make_task

Make = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


def start(config: Path, *more: str, **variables: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "gumshoe", "collect", str(config), *more]
    environ = {**os.environ, **variables}
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 400
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_line(words: str, process: subprocess.Popen[str]) -> None:
    """Two signals that come in a row may count as one: the first must have been heard before the second is sent."""
    assert process.stderr is not None
    assert any(words in line for line in process.stderr)


def stop(process: subprocess.Popen[str], number: int) -> None:
    """Stops a run at once."""
    process.send_signal(number)
    if number == signal.SIGINT:
        wait_for_line("Ctrl-C again stops at once", process)
        process.send_signal(number)
    process.communicate(timeout=400)
    assert process.returncode == 130


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


FIX: dict[str, Any] = {"path": "shop.py", "code": "        total = total - 10", "start": 7}
TURNS = [
    ("[verify] what fails?", "eval", {}),
    ("[seek] why?", "view", {"path": "shop.py"}),
    ("[edit] ten", "rewrite", FIX),
    ("[submit] done", "submit", {}),
]


class Gate:
    """A model that plays `TURNS` in every episode, and stays silent from a chosen request on until it is opened.

    So a process can be stopped in the middle of its run however fast it is. With `varies`, it looks only once, and the
    seed of the request decides what it changes.
    """

    def __init__(self, *, varies: bool = False) -> None:
        self._varies = varies
        self.closed = threading.Event()
        self._opened = threading.Event()
        self._guard = threading.Lock()
        self._requests = 0
        self.close_at(1 << 30)

    def close_at(self, request: int) -> None:
        """Closes it at the first request from this one on, counted from now, that goes on with an episode."""
        with self._guard:
            self._requests, self._last = 0, request
            self.closed.clear()
            self._opened = threading.Event()

    def open(self) -> None:
        self._last = 1 << 30
        self._opened.set()

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        with self._guard:
            self._requests += 1
            opened = self._opened
            if self._requests >= self._last and turn > 0:
                self.closed.set()
        if self.closed.is_set():
            opened.wait(200)
        text, name, arguments = TURNS[turn + self._varies]
        if self._varies and name == "rewrite":
            arguments = {**FIX, "code": f"        total = total - {body['seed'] % 3}"}
        with contextlib.suppress(OSError):  # who asked may have been killed
            chat(text, [(name, arguments)])(handler, body)


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def gated(gate: Gate, config_file: Make) -> Generator[Make]:
    """Makes a config whose policy asks the gate."""
    with provider(gate) as server:
        policy = {"kind": "openai", "model": "m", "base_url": server.url}
        yield lambda tasks: config_file(tasks, policy=policy)
        gate.open()


def test_killed_anywhere_and_run_again_every_trajectory_is_there_once(
    gate: Gate, gated: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = gated(4)
    run = tmp_path / "run"
    for request in (2, 6):
        gate.close_at(request)
        process = start(config)
        wait_for(gate.closed.is_set, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        gate.open()
    assert main(["collect", str(config)]) == 0
    assert "4 of 4 episodes" in capsys.readouterr().out
    found = list(read_trajectories(run))
    assert Counter(trajectory.task.id for trajectory in found) == {f"shop/{number}": 1 for number in range(4)}
    for one in found:
        calls = [(step.completion.text, call.name, call.arguments) for step in one.steps for call in step.tool_calls]
        assert calls == TURNS
    assert list((run / "journal").iterdir()) == []
    assert (run / "run.log").read_text().count("replays") >= 2
    assert list(read_failures(run)) == []
    assert main(["collect", str(config)]) == 0
    assert lines(run / "trajectories.jsonl") == 4


def stories(run: Path) -> dict[str, Any]:
    """What was done in each episode, by its id."""
    return {
        one.id: (
            one.branch,
            one.patch,
            [
                (step.completion.text, step.tool_calls, [comparable(seen.text) for seen in step.observations])
                for step in one.steps
            ],
        )
        for one in read_trajectories(run)
    }


def test_killed_in_a_branch_and_run_again_the_tree_is_whole(
    config_file: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate, run = Gate(varies=True), tmp_path / "run"
    with provider(gate) as server:
        policy = {"kind": "openai", "model": "m", "base_url": server.url, "send_seed": True}
        file = config_file(1, policy=policy, branch={"at": "edit", "width": 3}, eval_on_submit=False)
        gate.close_at(3 + 2 + 1)  # The first branch has ended, the edit of the second is asked for.
        process = start(file)
        wait_for(gate.closed.is_set, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        gate.open()
        left = summarize(run)
        assert (left["branches"], left["trees"], left["whole_trees"], left["in_flight"]) == (1, 1, 0, 1)
        export = ["export", str(run), "--out", str(tmp_path / "data"), "--unresolved", "--held-out-bugs"]
        export += ["--view", "agent", "--view", "steps_scored"]
        assert main(export) == 0
        assert f"note: 1 tree in {run} without all branches" in capsys.readouterr().err
        before = len(server.requests)
        assert main(["collect", str(file)]) == 0
        assert len(server.requests) - before == 7 - 5, "no turn is asked for twice, but that without an answer"
        assert main(["collect", str(file), "-p", f"out={tmp_path / 'smooth'}"]) == 0
    assert main(export) == 0
    assert "note" not in capsys.readouterr().err
    assert stories(run) == stories(tmp_path / "smooth")
    assert (len(stories(run)), list((run / "journal").iterdir())) == (3, [])


def test_ctrl_c_finishes_what_is_at_hand_and_a_second_process_is_refused(
    gate: Gate, gated: Make, tmp_path: Path, run_here: Run
) -> None:
    config = gated(8)
    run = tmp_path / "run"
    gate.close_at(5)
    process = start(config)
    wait_for(gate.closed.is_set, process)
    refused = run_here("collect", str(config))
    assert refused.returncode == 2
    assert f"process {process.pid} is using the folder" in refused.stderr
    process.send_signal(signal.SIGINT)
    wait_for_line("finishing the episodes at hand", process)
    gate.open()
    out, err = process.communicate(timeout=400)
    assert process.returncode == 130, err
    assert "run the same command again to resume" in out
    assert 1 <= lines(run / "trajectories.jsonl") < 8
    assert list((run / "journal").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_twice_or_sigterm_stops_at_once_though_the_server_is_silent(
    number: int, gate: Gate, gated: Make, tmp_path: Path
) -> None:
    config = gated(1)
    gate.close_at(1)
    process = start(config)
    wait_for(gate.closed.is_set, process)
    stop(process, number)
    assert list((tmp_path / "run" / "journal").glob("*.jsonl"))
    gate.open()
    assert main(["collect", str(config)]) == 0
    assert "replays" in (tmp_path / "run" / "run.log").read_text()


def test_ctrl_c_twice_stops_at_once_though_a_program_runs(config_file: Make, tmp_path: Path) -> None:
    config = config_file(1, limits={"command_timeout_s": 250})
    check, begun, temporary = tmp_path / "tasks" / "repo" / "check.py", tmp_path / "begun", tmp_path / "temporary"
    check.write_text(f"import time\n\nopen({str(begun)!r}, 'w').close()\ntime.sleep(240)\n", encoding="utf-8")
    temporary.mkdir()
    process = start(config, TMPDIR=str(temporary))
    wait_for(begun.exists, process)
    assert list(temporary.iterdir())
    stop(process, signal.SIGINT)
    assert list((tmp_path / "run" / "journal").glob("*.jsonl"))
    assert list(temporary.iterdir()) == []


def test_status_counts_what_is_there(config_file: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", str(config_file(3)), "-p", "tasks.limit=2", "-v"]) == 0
    capsys.readouterr()
    for more in ((), ("--json",)):
        assert main(["status", str(tmp_path / "run"), *more]) == 0
    *text, last = capsys.readouterr().out.splitlines()
    assert "2 of 2 finished" in "\n".join(text)
    data = json.loads(last)
    assert (data["finished"], data["resolved"], data["running"], data["stops"]) == (2, 2, False, {"submitted": 2})
    assert main(["status", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def scripted(tmp_path: Path, *turns: tuple[str, str, dict[str, Any]]) -> dict[str, str]:
    """A policy that plays these turns."""
    calls = ([{"id": "1", "name": name, "arguments": arguments}] for _, name, arguments in turns)
    lines = (json.dumps({"text": "", "tool_calls": call}) for call in calls)
    script = tmp_path / "script.jsonl"
    script.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"kind": "scripted", "script": str(script)}


def test_what_failed_is_played_again_on_request_and_what_it_was_is_kept(tmp_path: Path, config_file: Make) -> None:
    config = config_file(2, policy=scripted(tmp_path, ("", "submit", {})))
    run = tmp_path / "run"
    assert main(["collect", str(config)]) == 0
    first = list(read_trajectories(run))
    assert [found.resolved for found in first] == [False, False]
    kept = first[0].model_copy(update={"scores": (Score(name="resolved", value=1.0),)})
    write_jsonl(run / "trajectories.jsonl", [kept, first[1]])
    scripted(tmp_path, *TURNS)

    assert main(["collect", str(config)]) == 0
    assert list(read_trajectories(run)) == [kept, first[1]]
    assert main(["collect", str(config), "--force-failed"]) == 0
    again = list(read_trajectories(run))
    assert again[0] == kept
    assert [found.id for found in again] == [found.id for found in first]
    assert len(again[1].steps) == len(TURNS)
    assert list(read_records(run / "replaced.jsonl", Trajectory)) == [first[1]]

    assert main(["collect", str(config), "--force-all"]) == 0
    assert all(len(found.steps) == len(TURNS) for found in read_trajectories(run))
    assert list(read_records(run / "replaced.jsonl", Trajectory)) == [first[1], *again]


def test_what_was_given_up_is_tried_again_on_request(tmp_path: Path, config_file: Make) -> None:
    config = config_file(1, policy=scripted(tmp_path), attempts=1)
    assert main(["collect", str(config)]) == 1
    scripted(tmp_path, *TURNS)
    assert main(["collect", str(config)]) == 1
    assert main(["collect", str(config), "--force-failed"]) == 0
    assert lines(tmp_path / "run" / "trajectories.jsonl") == 1


@contextmanager
def two_nodes() -> Generator[tuple[str, Callable[[], None]]]:
    """The address of a cluster of two nodes, and what kills every process of the second one."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    options: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 80 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    try:
        second = cluster.add_node(**options)
        yield str(cluster.address), lambda: cluster.remove_node(second, allow_graceful=False)
    finally:
        cluster.shutdown()


def in_flight(run: Path) -> int:
    """Episodes whose first completion is on disk."""
    return sum(b'"completion"' in path.read_bytes() for path in (run / "journal").glob("*.jsonl"))


def test_a_node_that_dies_loses_nothing_but_the_steps_in_flight(config_file: Make, tmp_path: Path) -> None:
    config = config_file(4, workers=4, limits={"command_timeout_s": 250})
    check, gate = tmp_path / "tasks" / "repo" / "check.py", tmp_path / "gate"
    # No episode goes on before all four workers have one and a node has died.
    wait = f"import os, time\n\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.05)\n"
    check.write_text(wait + check.read_text(), encoding="utf-8")
    run, smooth = tmp_path / "run", tmp_path / "smooth"
    with two_nodes() as (address, kill_second):
        process = start(config, "-p", "runner=ray", "-p", f"ray.address={address}")
        wait_for(lambda: in_flight(run) == 4, process)
        kill_second()
        gate.touch()
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        assert "4 of 4 episodes" in out
    assert main(["collect", str(config), "-p", f"out={smooth}"]) == 0
    found = list(read_trajectories(run))
    assert Counter(one.task.id for one in found) == {f"shop/{number}": 1 for number in range(4)}
    assert all(one.resolved for one in found)
    assert stories(run) == stories(smooth)
    failures = list(read_failures(run))
    assert {entry["kind"] for entry in failures} == {"SandboxError"}
    assert all("node of this episode is lost" in entry["message"] for entry in failures)
    assert "replays" in (run / "run.log").read_text()
    assert list((run / "journal").iterdir()) == []


def test_without_a_cluster_at_the_address_it_says_so(config_file: Make, run_here: Run) -> None:
    done = run_here("collect", str(config_file(1)), "-p", "runner=ray", "-p", "ray.address=127.0.0.1:9")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("gumshoe collect: no Ray cluster responds at ray.address 127.0.0.1:9")


def test_a_host_plays_one_episode_after_the_other(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 3)
    host = Host()
    with pytest.raises(SandboxError, match="no episode in progress"):
        host.call("patch")
    options = {"tools": ("view", "rewrite", "submit"), "trusted": True, "oracle": oracle}
    for _ in range(2):
        host.reset(task, {**options, "sandbox": LOCAL}, 1)
        assert host.call("describe").sandbox == "local"
        assert host.call("patch") == ""
    *_, info = host.call("step", ToolCall(id="1", name="rewrite", arguments=FIX))
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


@pytest.mark.needs("bubblewrap")
def test_a_small_soak_holds(root: Path, tmp_path: Path) -> None:
    sizes = ["--episodes", "4", "--workers", "2", "--kills", "1", "--hostile", "0.5"]
    argv = [sys.executable, "-m", "benchmarks.soak.soak", "--folder", str(tmp_path / "soak"), *sizes]
    done = subprocess.run(
        [*argv, "--sandbox", "bubblewrap"], cwd=root, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads((tmp_path / "soak" / "result.json").read_text(encoding="utf-8"))
    assert (facts["trajectories"], facts["kills"], facts["lost"], facts["twice"]) == (4, 1, 0, 0)
    assert facts["hostile"] == 2
    assert facts["processes left"] == facts["temporary files left"] == []
