"""Evaluates many tasks with many workers, kills the process over and over, and compares the summary with that of a run
that was never killed.

    python benchmarks/soak_eval.py --tasks 300 --workers 16 --kills 4
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from gumshoe.env.diff import make_patch
from gumshoe.records import Completion, Limits, Oracle, Task, ToolCall, WorkspaceSpec

CLEAN = "def price(total, members):\n    if members:\n        total = total - 10\n    return total\n"
CHECK = "from shop import price\n\n\ndef test_members():\n    assert price(50, True) == 40\n"


def main() -> int:
    """Runs both evaluations; returns 0 if their summaries are equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--solver", action="store_true", help="let the scripted solver repair the bugs as well")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_config(folder, arguments)
        out = folder / "out"
        began = time.monotonic()
        killed = [kill_once(config, out, number + 1, arguments) for number in range(arguments.kills)]
        print("killed with so many episodes finished:", ", ".join(map(str, killed)), flush=True)
        run(config, out)
        print(f"killed {arguments.kills} times and resumed: {time.monotonic() - began:.0f} s", flush=True)
        began = time.monotonic()
        run(config, folder / "whole")
        print(f"in one go: {time.monotonic() - began:.0f} s", flush=True)
        left, right = (summary(place) for place in (out, folder / "whole"))
        print(f"episodes: {[arm['episodes'] for arm in left['arms']]}, each once: {each_once(out)}")
        print(f"equal summaries: {left == right}")
        return 0 if left == right and each_once(out) else 1


def write_config(folder: Path, arguments: argparse.Namespace) -> Path:
    """A task set, a script for one arm, and the evaluation's config."""
    tasks = folder / "tasks"
    write_tasks(tasks, arguments.tasks)
    look = ToolCall(id="0", name="view", arguments={"path": "shop.py"})
    quote = {"claim": "it stands there", "step": 0, "quote": "total = total"}
    found = {"locations": [{"path": "shop.py", "start": 3}], "findings": [quote], "hypothesis": "too much"}
    script = [
        Completion(text="[seek 0.5] I look.", tool_calls=(look,)),
        Completion(
            text="[report 0.8] I report.",
            tool_calls=(ToolCall.model_validate({"id": "1", "name": "report", "arguments": found}),),
        ),
    ]
    (folder / "script.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in script), encoding="utf-8")
    config = {
        "out": "runs/soak",
        "tasks": {"source": str(tasks)},
        "arms": [
            {"name": "script", "policy": {"kind": "scripted", "script": str(folder / "script.jsonl")}},
            {"name": "traceback", "policy": {"kind": "traceback"}},
        ],
        "solver": {"tries": 2, "references": ["no_pack"]} if arguments.solver else None,
        "sandbox": {
            "kind": arguments.sandbox,
            "unsafe": True,
            "pool": arguments.workers,
            "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        },
        "workers": arguments.workers,
    }
    path = folder / "eval.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def write_tasks(folder: Path, count: int) -> None:
    """Writes that many bugs in one small project."""
    repo = folder / "repo"
    repo.mkdir(parents=True)
    (repo / "shop.py").write_text(CLEAN, encoding="utf-8")
    (repo / "test_shop.py").write_text(CHECK, encoding="utf-8")
    with (folder / "tasks.jsonl").open("w") as tasks, (folder / "oracles.jsonl").open("w") as oracles:
        for number in range(count):
            buggy = CLEAN.replace("total - 10", f"total - {11 + number}")
            task = Task(
                id=f"shop/{number}",
                source="synth",
                problem_statement=f"Members get {11 + number} off instead of 10.",
                workspace=WorkspaceSpec(path=str(repo), overlay={"shop.py": buggy}),
                entrypoint=("python", "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                readonly=("test_shop.py",),
                limits=Limits(steps=10, command_timeout_s=120),
            )
            patch = make_patch({"shop.py": (buggy.encode(), CLEAN.encode())})
            tasks.write(f"{task.model_dump_json(exclude_defaults=True)}\n")
            oracles.write(f"{Oracle(task_id=task.id, gold_patch=patch).model_dump_json(exclude_defaults=True)}\n")


def command(config: Path, out: Path) -> list[str]:
    """The command that runs the evaluation into a folder."""
    return [sys.executable, "-m", "gumshoe", "eval", str(config), "-p", f"out={out}"]


def kill_once(config: Path, out: Path, number: int, arguments: argparse.Namespace) -> int:
    """Kills the command after a share of the episodes. Returns how many had finished by then."""
    wanted = number * 2 * arguments.tasks // (arguments.kills + 1)
    with subprocess.Popen(
        command(config, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        while process.poll() is None and finished(out) < wanted:
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGKILL)
    return finished(out)


def run(config: Path, out: Path) -> None:
    """Runs the command to its end."""
    subprocess.run(command(config, out), check=True, stdout=subprocess.DEVNULL)


def finished(out: Path) -> int:
    """Episodes on disk."""
    return sum(file.read_bytes().count(b"\n") for file in out.glob("arms/*/trajectories.jsonl"))


def summary(out: Path) -> dict[str, Any]:
    """What is compared: everything except the config's hash, which depends on the folder's name."""
    known = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    known.pop("config_hash")
    return known


def each_once(out: Path) -> bool:
    """Whether no episode is duplicated."""
    ids = [
        (file.parent.name, json.loads(line)["id"])
        for file in out.glob("arms/*/trajectories.jsonl")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    return len(ids) == len(set(ids))


if __name__ == "__main__":
    sys.exit(main())
