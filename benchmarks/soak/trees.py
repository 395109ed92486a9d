"""Trees over many tasks, collected by a process that is killed again and again, then trained on by a bare TRL script.

    python -m benchmarks.soak.trees --set FOLDER       16 casebook tasks and 4 from the set, width 4, five SIGKILLs
    python -m benchmarks.soak.trees --model MODEL      train this model instead of one with random weights

The same trees are collected once more without a kill. Both must be equal: each tree complete, nothing duplicated, the
same calls, answers and patches, values and advantages that follow from the verdicts. The figures go to
FOLDER/trees.json; it exits with 1 if something did not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from benchmarks.bug import with_copy
from benchmarks.soak.editor_policy import EDIT_TURN, edits_of
from benchmarks.soak.leftovers import adopt_orphans, finished, processes_left
from gumshoe.collect.commands.runs import summarize
from gumshoe.collect.data.journal import comparable
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.collect.data.tree import Trees, node_of
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, Trajectory

ROOT = Path(__file__).parents[2]
WIDTH = 4
BARE = """
import sys
import datasets
from trl import DPOConfig, DPOTrainer
data, model, out, steps = sys.argv[1:]
rows = datasets.load_dataset(data, "preferences", split="train", cache_dir=f"{out}-cache")
settings = DPOConfig(out, max_steps=int(steps), per_device_train_batch_size=2, max_length=None, learning_rate=1e-4,
                     logging_steps=1, use_cpu=True, bf16=False, report_to=[], dataloader_pin_memory=False)
trainer = DPOTrainer(model, args=settings, train_dataset=rows)
trainer.train()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
print(f"\\ntrained {trainer.state.global_step} steps on {len(rows)} pairs, loss {losses[0]:.4f} to {losses[-1]:.4f}")
"""


def main() -> int:
    """Collects with kills and without, compares, exports, trains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/soak-trees"), help="emptied (runs/soak-trees)")
    parser.add_argument("--set", type=Path, help="task set of real packages, for all tasks beyond the casebook's")
    parser.add_argument("--tasks", type=int, default=20, help="tasks (20)")
    parser.add_argument("--kills", type=int, default=5, help="times SIGKILL (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills (0)")
    parser.add_argument("--model", help="model to train; default one of two layers with random weights")
    parser.add_argument("--steps", type=int, default=10, help="steps of training (10)")
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    adopt_orphans()
    tasks = chosen_tasks(options.set, options.tasks)
    write_taskset(folder / "tasks", [(with_copy(task, folder / "tasks"), oracle) for task, oracle in tasks])
    edits = {task.id: edits_of(oracle) for task, oracle in tasks}
    (folder / "edits.json").write_text(json.dumps(edits), encoding="utf-8")
    killed, smooth = folder / "killed", folder / "smooth"
    began = time.monotonic()
    moments = collect_and_kill(folder, killed, options.kills, options.tasks * WIDTH, random.Random(options.seed))
    facts: dict[str, Any] = {
        "tasks": dict(Counter(str(task.tags.get("project", "casebook")) for task, _ in tasks)),
        "killed at (trajectories, whole trees, in flight)": moments,
        "minutes with the kills": round((time.monotonic() - began) / 60, 1),
    }
    began = time.monotonic()
    start(folder, smooth).wait()
    facts["minutes without"] = round((time.monotonic() - began) / 60, 1)
    facts |= findings(killed, smooth, options.tasks)
    facts |= train(folder, killed, options.model, options.steps)
    for name, value in facts.items():
        print(f"{name}: {value}")
    (folder / "trees.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    held = not facts["problems"] and facts["trained"].startswith("trained")
    print("everything held" if held else "something did not hold")
    return 0 if held else 1


def chosen_tasks(extra: Path | None, count: int) -> list[tuple[Task, Oracle]]:
    """Casebook tasks whose fix is one hunk, then those from the set, taking one per project in turn."""
    usable = [pair for pair in load_tasks("casebook") if edits_of(pair[1]) is not None]
    if extra is not None:
        by_project: dict[str, list[tuple[Task, Oracle]]] = {}
        for pair in load_tasks(str(extra)):
            if edits_of(pair[1]) is not None:
                by_project.setdefault(str(pair[0].tags["project"]), []).append(pair)
        usable += [pairs.pop(0) for _ in range(count) for pairs in by_project.values() if pairs]
    if len(usable) < count:
        raise SystemExit(f"only {len(usable)} tasks are usable: give a larger --set")
    return usable[:count]


def start(folder: Path, out: Path) -> subprocess.Popen[bytes]:
    """A run in a process of its own."""
    config = {
        "out": str(out),
        "tasks": {"source": str(folder / "tasks")},
        "agent": {"tools": ["eval", "view", "pdb", "rewrite", "submit"]},
        "policy": {
            "kind": "custom",
            "path": "benchmarks.soak.editor_policy:Editor",
            "options": {"edits": str(folder / "edits.json")},
        },
        "branch": {"at": "edit", "width": WIDTH},
        "sandbox": {"kind": "bubblewrap"},
        "workers": 2,
    }
    file = folder / f"{out.name}.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    with (folder / f"{out.name}.txt").open("ab") as log:
        argv = [sys.executable, "-m", "gumshoe", "collect", str(file)]
        return subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)})


def collect_and_kill(folder: Path, out: Path, kills: int, total: int, moments: random.Random) -> list[list[int]]:
    """Collects, killed that many times at moments spread over the run. Returns what there was after each kill."""
    seen: list[list[int]] = []
    for number in range(1, kills + 1):
        process = start(folder, out)
        while process.poll() is None and finished(out) < number * total // (kills + 1):
            time.sleep(0.02)
        time.sleep(moments.uniform(0, 1.5))
        if process.poll() is not None:
            raise SystemExit(f"the run ended by itself with {process.returncode}: see {folder / out.name}.txt")
        process.send_signal(signal.SIGKILL)
        process.wait()
        status = summarize(out)
        seen.append([finished(out), status["whole_trees"], status["in_flight"]])
    start(folder, out).wait()
    return seen


def findings(killed: Path, smooth: Path, tasks: int) -> dict[str, Any]:
    """What the killed run holds, and what in it is not as it must be."""
    kept = list(read_trajectories(killed))
    status = summarize(killed)
    problems = [
        f"{name} is there {count} times" for name, count in Counter(one.id for one in kept).items() if count > 1
    ]
    problems += [f"failure: {entry['id']} {entry['kind']}" for entry in read_failures(killed)]
    problems += [f"journal left: {path.name}" for path in (killed / "journal").iterdir()]
    problems += [f"process left: {pid}" for pid in processes_left()]
    if status["whole_trees"] != tasks:
        problems.append(f"{status['whole_trees']} of {tasks} trees are whole")
    ours, theirs = ({one.id: story(one) for one in read_trajectories(out)} for out in (killed, smooth))
    problems += [f"{name} differs" for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)]
    problems += wrong_values(kept, tasks)
    outcomes = Counter(one.resolved for one in kept)
    return {
        "trajectories": len(kept),
        "whole trees": status["whole_trees"],
        "resolved, not": [outcomes[True], outcomes[False]],
        "trees with both outcomes": mixed(kept),
        "episodes gone on with from a journal": (killed / "run.log").read_text(encoding="utf-8").count(" replays "),
        "problems": problems,
    }


def story(one: Trajectory) -> Any:
    """Everything in an episode except its times."""
    turns = [
        (step.completion.text, step.tool_calls, [comparable(s.text) for s in step.observations]) for step in one.steps
    ]
    return one.branch, one.patch, one.resolved, one.stop, turns


def by_task(kept: list[Trajectory]) -> dict[str, list[Trajectory]]:
    """The episodes of each task."""
    found: dict[str, list[Trajectory]] = {}
    for one in kept:
        found.setdefault(one.task.id, []).append(one)
    return found


def mixed(kept: list[Trajectory]) -> int:
    """How many trees hold both a successful and a failed fix."""
    return sum(len({one.resolved for one in episodes}) == 2 for episodes in by_task(kept).values())


def wrong_values(kept: list[Trajectory], tasks: int) -> list[str]:
    """Trees of the wrong shape, and decisions whose value or advantage is not what the verdicts say."""
    found = by_task(kept)
    problems = [f"{len(found)} of {tasks} tasks have episodes"] if len(found) != tasks else []
    trees = Trees(map(node_of, kept))
    for task, episodes in found.items():
        steps = Counter(one.branch.step if one.branch else None for one in episodes)
        if steps != {None: 1, EDIT_TURN: WIDTH - 1}:
            problems.append(f"{task} has another shape: {dict(steps)}")
        for one in episodes:
            others = [float(other.resolved is True) for other in episodes if other is not one]
            wanted = (float(one.resolved is True), float(one.resolved is True) - fmean(others))
            decision = trees.decision(one.id, EDIT_TURN)
            if (decision.value, decision.advantage) != wanted or decision.count != 1:
                problems.append(f"{one.id}: {decision}, wanted {wanted}")
    return problems


def train(folder: Path, run: Path, model: str | None, steps: int) -> dict[str, Any]:
    """Exports the pairs, and trains on them with nothing but datasets and TRL."""
    dataset = folder / "dataset"
    argv = [sys.executable, "-m", "gumshoe", "export", str(run), "--out", str(dataset), "--view", "preferences"]
    exported = subprocess.run([*argv, "--test-share", "0"], capture_output=True, text=True, check=True).stdout
    if model is None:
        sys.path.insert(0, str(ROOT / "tests"))
        from support.train.tiny_model import make_tiny_model

        model = str(make_tiny_model(folder / "model"))
    began = time.monotonic()
    # Isolated: it cannot import anything from this repository.
    argv = [sys.executable, "-I", "-c", BARE, str(dataset), model, str(folder / "trained"), str(steps)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    (folder / "training.txt").write_text(result.stdout + result.stderr, encoding="utf-8")
    last = (result.stdout.strip() or "nothing").splitlines()[-1]
    return {
        "export": exported.strip().splitlines()[-1].strip(),
        "trained": last if result.returncode == 0 else f"failed: {result.stderr.strip().splitlines()[-1]}",
        "seconds of training": round(time.monotonic() - began, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
