"""Episodes per minute of several checkouts of this repository, compared in one run, in turns.

    git worktree add ../before COMMIT
    python -m benchmarks.environment.bench_episodes ../before . --backends docker bubblewrap --repeats 3
    python -m benchmarks.environment.bench_episodes ../before . --set tasks/packages --bug synth/schema/ID

Each round is a process of its own that plays the same scripted episode with one worker and one warm sandbox; two
episodes run before the clock starts. The table shows each round and the medians. A task from a harvested set is played
without its environment, which old checkouts do not know: it must need nothing but pytest.
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

from benchmarks.environment.bench_bug import Bug, add_bug_options, find_bug, with_copy
from gumshoe.env.tasks.taskset import write_taskset

TURN = """
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
print(json.dumps(60 * int(count) / (time.perf_counter() - began)))
close_pools()
"""


def main() -> None:
    """Measures in turns, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="+", help="folders with a checkout each")
    parser.add_argument("--backends", nargs="+", default=["bubblewrap"], help="sandboxes (bubblewrap)")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of each checkout (3)")
    parser.add_argument("--episodes", type=int, default=10, help="episodes of a round (10)")
    add_bug_options(parser)
    options = parser.parse_args()
    bug = without_environment(find_bug(options.set, options.bug))
    with tempfile.TemporaryDirectory() as folder:
        write_taskset(Path(folder), [(with_copy(bug.task, Path(folder)), bug.oracle)])
        for backend in options.backends:
            found: dict[Path, list[float]] = {checkout: [] for checkout in options.checkouts}
            for _ in range(options.repeats):
                for checkout, rates in found.items():
                    rates.append(one_round(checkout.resolve(), folder, bug, backend, options.episodes))
            for checkout, rates in found.items():
                rounds = ", ".join(f"{rate:.0f}" for rate in rates)
                print(f"{backend}  {checkout}  median {statistics.median(rates):.0f} a minute  ({rounds})", flush=True)


def without_environment(bug: Bug) -> Bug:
    """The bug in the sandbox's own environment."""
    workspace = bug.task.workspace.model_copy(update={"environment": None})
    return replace(bug, task=bug.task.model_copy(update={"workspace": workspace}))


def one_round(checkout: Path, source: str, bug: Bug, backend: str, episodes: int) -> float:
    """Episodes per minute of one process."""
    config = bug.sandbox(backend).model_copy(update={"pool": 1}).model_dump_json(exclude_unset=True)
    argv = [sys.executable, "-c", TURN, str(checkout), source, json.dumps(bug.episode()), config, str(episodes)]
    return float(json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
