"""Several checkouts of this repository, compared in one run, in turns: bugs made in real packages, or episodes played.

    git worktree add ../before COMMIT
    python -m benchmarks.speed.checkouts bugs ../before . --projects tasks/packages/packages/*/projects/* --bugs 40
    python -m benchmarks.speed.checkouts episodes ../before . --backends docker bubblewrap --repeats 3
    python -m benchmarks.speed.checkouts episodes ../before . --set tasks/packages --bug synth/schema/ID

Each turn is a process of its own that runs the checkout's own code: TURN_OF_BUGS or TURN_OF_EPISODES, below.

bugs: that many verified bugs of a project, one worker, bubblewrap; the run of the tests on the clean code is included.
A project is a folder with pytest tests, whose package is next to them or in `src`; a set made by `gumshoe harvest` has
such folders. What its tests need besides pytest has to be installed here and named by `--packages`.

episodes: the same scripted episode with one worker and one warm sandbox; two episodes run before the clock starts. A
task from a harvested set is played without its environment, which old checkouts do not know: it must need nothing but
pytest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.speed.bug import Bug, add_bug_options, find_bug, with_copy
from gumshoe.env.tasks.taskset import write_taskset

TURN_OF_BUGS = """
import json, sys, time
checkout, project, count, *packages = sys.argv[1:]
sys.path.insert(0, checkout + "/src")
import gumshoe
from gumshoe.env import SandboxConfig
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.make import make_bugs
from gumshoe.errors import GumshoeError
assert gumshoe.__file__.startswith(checkout), gumshoe.__file__
seen = {"packages": ("pytest", *packages)} if "packages" in SandboxConfig.model_fields else {}  # else all of them
sandbox = SandboxConfig(kind="bubblewrap", env={"PYTHONPATH": "/workspace/src"}, **seen)
config = SynthConfig(projects=(project,), per_project=int(count), timeout_s=120, workers=1, sandbox=sandbox)
began = time.perf_counter()
counts, refused = {}, ""
try:
    (counts,) = make_bugs(config).counts.values()
except GumshoeError as error:
    refused = str(error)
print(json.dumps({"seconds": time.perf_counter() - began, "counts": counts, "refused": refused}))
"""

TURN_OF_EPISODES = """
import json, sys, time
checkout, source, calls, config, count = sys.argv[1:]
sys.path[:0] = [checkout + "/src"]
import gumshoe
from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.sandboxes.open import close_pools
from gumshoe.env.tasks import load_tasks
from gumshoe.records import ToolCall
assert gumshoe.__file__.startswith(checkout), gumshoe.__file__
((task, _),) = load_tasks(source)
calls = [ToolCall(id="1", name=name, arguments=arguments) for name, arguments in json.loads(calls)]
config = SandboxConfig.model_validate_json(config)
def episode():
    env = DebugEnv(task, tools=sorted({call.name for call in calls}), sandbox=config, trusted=True)
    env.reset(seed=0)
    for call in calls:
        failure = env.step(call)[4]["observation"].failure
        assert failure is None, (call.name, failure.message)
    env.close()
for _ in range(2):
    episode()
began = time.perf_counter()
for _ in range(int(count)):
    episode()
rate = 60 * int(count) / (time.perf_counter() - began)
close_pools()
print(json.dumps(rate))
"""


def main() -> None:
    """Measures in turns, and prints a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    compared = parser.add_subparsers(required=True)
    bugs = compared.add_parser("bugs", help="verified bugs a minute, by project")
    episodes = compared.add_parser("episodes", help="episodes a minute, by backend")
    for one in (bugs, episodes):
        one.add_argument(
            "checkouts", type=Path, nargs="+", help="folders with a checkout each; the first is compared with"
        )
    bugs.add_argument("--projects", type=Path, nargs="+", required=True, help="folders of projects")
    bugs.add_argument("--bugs", type=int, default=40, help="verified bugs of each turn (40)")
    bugs.add_argument("--packages", nargs="*", default=[], help="distributions of this Python that the tests need")
    bugs.set_defaults(compare=compare_bugs)
    episodes.add_argument("--backends", nargs="+", default=["bubblewrap"], help="sandboxes (bubblewrap)")
    episodes.add_argument("--repeats", type=int, default=3, help="rounds of each checkout (3)")
    episodes.add_argument("--episodes", type=int, default=10, help="episodes of a round (10)")
    add_bug_options(episodes)
    episodes.set_defaults(compare=compare_episodes)
    options = parser.parse_args()
    options.compare(options)


def compare_bugs(options: argparse.Namespace) -> None:
    """A line for each turn, and the factors for each project."""
    for project in options.projects:
        rates: list[float] = []
        for checkout in options.checkouts:
            made = run_turn(TURN_OF_BUGS, checkout, str(project.resolve()), str(options.bugs), *options.packages)
            rates.append(60 * made["counts"].get("kept", 0) / made["seconds"])
            what = made["counts"] or made["refused"]
            rate = f"{made['seconds']:.0f} s  {rates[-1]:.1f} bugs a minute"
            print(f"{project.name}  {checkout}  {rate}  {what}", flush=True)
        factors = ", ".join(f"{rate / rates[0]:.1f}" for rate in rates[1:]) if rates[0] else "no bugs in the first"
        print(f"{project.name}  times as fast: {factors}", flush=True)


def compare_episodes(options: argparse.Namespace) -> None:
    """A line for each backend and checkout: the median of its rounds."""
    bug = without_environment(find_bug(options.set, options.bug))
    calls = json.dumps(bug.episode())
    with tempfile.TemporaryDirectory() as folder:
        write_taskset(Path(folder), [(with_copy(bug.task, Path(folder)), bug.oracle)])
        for backend in options.backends:
            config = bug.sandbox(backend).model_copy(update={"pool": 1}).model_dump_json(exclude_unset=True)
            found: dict[Path, list[float]] = {checkout: [] for checkout in options.checkouts}
            for _ in range(options.repeats):
                for checkout, rates in found.items():
                    rate = run_turn(TURN_OF_EPISODES, checkout, folder, calls, config, str(options.episodes))
                    rates.append(float(rate))
            for checkout, rates in found.items():
                rounds = ", ".join(f"{rate:.0f}" for rate in rates)
                print(f"{backend}  {checkout}  median {statistics.median(rates):.0f} a minute  ({rounds})", flush=True)


def without_environment(bug: Bug) -> Bug:
    """The bug in the sandbox's own environment."""
    workspace = bug.task.workspace.model_copy(update={"environment": None})
    return replace(bug, task=bug.task.model_copy(update={"workspace": workspace}))


def run_turn(code: str, checkout: Path, *words: str) -> Any:
    """What a process that runs a turn with a checkout's own code says in its last line."""
    argv = [sys.executable, "-c", code, str(checkout.resolve()), *words]
    return json.loads(subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
