"""An exported package is an environment of verifiers: its own command plays it against a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import peers
import pytest
from provider_server import chat, provider

from gumshoe.cli import main
from gumshoe.env.diff import apply_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.records import Oracle, Task

CASES = ("casebook/build_plan", "casebook/circuit_breaker")
# What verifiers imports and we do not have. Its other requirements stand in our environment, the SDK of OpenAI in a
# newer version than it asks for.
PACKAGES = (
    *("verifiers", "prime-pydantic-config", "prime-sandboxes", "renderers", "aiofiles", "antlr4-python3-runtime"),
    *("connectrpc", "latex2sympy2_extended", "math-verify", "protobuf-py", "protobuf-py-ext", "pyqwest", "tomli-w"),
    *("loguru", "mcp", "mcp-types", "prime-runs", "prime-traces", "prime-tunnel"),
)
EVALUATE = "from verifiers.v1.cli.eval.main import main; main()"


def repair(task: Task, oracle: Oracle) -> list[tuple[str, dict[str, str]]]:
    """Calls that make the files as the gold patch leaves them."""
    texts = {path: text for path, text in task.workspace.overlay.items() if text is not None}
    return [
        ("rewrite", {"path": path, "code": text or ""}) for path, text in apply_patch(texts, oracle.gold_patch).items()
    ]


@pytest.mark.needs("bubblewrap")
def test_verifiers_plays_the_episodes_and_our_verifier_rewards(tmp_path: Path) -> None:
    """Two tasks, one repaired and one left as it was."""
    package = tmp_path / "gumshoe-cases"
    assert main(["tasks", "export", "casebook", "--to", "verifiers", "--limit", "2", "--out", str(package)]) == 0
    (task, oracle), *_ = load_tasks("casebook", ids=CASES)
    submit = [("submit", {})]
    answers = [chat("[edit] I repair it.", repair(task, oracle)), chat("[submit] Done.", submit)]
    with provider(*answers, chat("[submit] I give up.", submit)) as server:
        options = {
            "--model": "m",
            "--client.base-url": server.url,
            "--client.api-key-var": "STUB_KEY",
            "--max-concurrent": "1",
            "--output-dir": str(tmp_path / "out"),
            "--run.name": "one",
            "--env.agent.harness.id": "gumshoe-cases",
            "--env.agent.harness.gumshoe": str(Path(sys.executable).with_name("gumshoe")),
            "--env.agent.harness.sandbox": "bubblewrap",
        }
        words = [word for option in options.items() for word in option]
        done = subprocess.run(
            [sys.executable, "-c", EVALUATE, "gumshoe-cases", *words, "--no-push", "--no-rich"],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(peers.install(tmp_path / "peers", *PACKAGES)), str(package)]),
                "STUB_KEY": "k",
                "HOME": str(tmp_path / "home"),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = (tmp_path / "out" / "one" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    found = {trace["task"]["data"]["id"]: trace for trace in traces(lines)}
    assert {name: trace["rewards"]["resolved"]["score"] for name, trace in found.items()} == {
        CASES[0]: 1.0,
        CASES[1]: 0.0,
    }
    assert [found[case]["metrics"]["turns"] for case in CASES] == [2.0, 1.0]
    assert [found[case]["metrics"]["tampered"] for case in CASES] == [0.0, 0.0]
    assert not any(trace["errors"] for trace in found.values())
    assert len(server.requests) == 3
    offered = {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    assert {"pdb", "suspects", "submit"} <= offered


def traces(lines: list[str]) -> list[dict[str, Any]]:
    """The traces of a file, which may hold them one a line or in episodes."""
    read = [json.loads(line) for line in lines]
    return [trace for one in read for trace in one.get("traces", [one])]


def test_the_package_carries_its_tasks_and_their_projects(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "calc.py").write_text("x = 1\n", encoding="utf-8")
    (tmp_path / "mine" / "test_calc.py").write_text(
        "from calc import x\n\ndef test_x():\n    assert x == 2\n", encoding="utf-8"
    )
    source = f"local:{tmp_path / 'mine'}"
    out = tmp_path / "Sums of.mine"
    assert main(["tasks", "export", source, "-o", "entrypoint=pytest", "--to", "verifiers", "--out", str(out)]) == 2
    out = tmp_path / "my-sums"
    assert main(["tasks", "export", source, "-o", "entrypoint=pytest", "--to", "verifiers", "--out", str(out)]) == 0
    project = tomllib.loads((out / "pyproject.toml").read_text(encoding="utf-8"))
    assert (project["project"]["name"], sorted(path.name for path in out.iterdir())) == (
        "my-sums",
        ["README.md", "my_sums", "pyproject.toml"],
    )
    ((before, _),) = load_tasks(source, entrypoint="pytest")
    moved = out.rename(tmp_path / "moved")
    ((task, _),) = load_tasks(str(moved / "my_sums" / "tasks"))
    assert (task.hash, task.id) == (before.hash, before.id)
    assert str(task.workspace.path).startswith(str(moved))
