"""Episodes a minute of several checkouts of this repository, compared in one run, in turns.

    git worktree add ../before COMMIT
    python benchmarks/bench_episodes.py ../before . --backends docker bubblewrap --repeats 3

Each turn is a process of its own that plays the scripted episode of the checkout's own `bench_env.py` with one worker
and one warm sandbox; two episodes before the clock starts. The table shows each turn and the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

TURN = """
import json, sys, time
checkout, backend, count = sys.argv[1:]
sys.path[:0] = [checkout + "/src", checkout + "/benchmarks"]
import bench_env, gumshoe
from gumshoe.env import SandboxConfig
from gumshoe.env.sandboxes.open import close_pools
from gumshoe.env.tasks import load_tasks
assert gumshoe.__file__.startswith(checkout), gumshoe.__file__
task = next(task for task, _ in load_tasks("casebook") if task.id == "casebook/build_plan")
config = SandboxConfig(kind=backend, env=bench_env.ENVIRONMENT, pool=1)
for _ in range(2):
    bench_env.episode(task, config)
began = time.perf_counter()
for _ in range(int(count)):
    bench_env.episode(task, config)
print(json.dumps(60 * int(count) / (time.perf_counter() - began)))
close_pools()
"""


def main() -> None:
    """Measures in turns, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="+", help="folders with a checkout each")
    parser.add_argument("--backends", nargs="+", default=["bubblewrap"], help="sandboxes (bubblewrap)")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each checkout (3)")
    parser.add_argument("--episodes", type=int, default=10, help="episodes of a turn (10)")
    options = parser.parse_args()
    for backend in options.backends:
        found: dict[Path, list[float]] = {checkout: [] for checkout in options.checkouts}
        for _ in range(options.repeats):
            for checkout, rates in found.items():
                rates.append(one_turn(checkout.resolve(), backend, options.episodes))
        for checkout, rates in found.items():
            turns = ", ".join(f"{rate:.0f}" for rate in rates)
            print(f"{backend}  {checkout}  median {statistics.median(rates):.0f} a minute  ({turns})", flush=True)


def one_turn(checkout: Path, backend: str, episodes: int) -> float:
    """Episodes a minute of one process."""
    argv = [sys.executable, "-c", TURN, str(checkout), backend, str(episodes)]
    return float(json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
