"""How fast several checkouts of this repository synthesize bugs in real packages, compared in one run, in turns.

    git worktree add ../before COMMIT
    python -m benchmarks.bench_packages ../before . --projects tasks/packages/packages/*/projects/* --bugs 40

A project is a folder with pytest tests, whose package is next to them or in `src`; a set made by `gumshoe harvest` has
such folders. What its tests need besides pytest has to be installed here and named by `--packages`. Each turn is a
process of its own that makes that many verified bugs with the checkout's own `make_bugs`, one worker, bubblewrap. The
run of the tests on the clean code is included.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TURN = """
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


def main() -> None:
    """Measures in turns, prints a line for each turn and the factors for each project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "checkouts", type=Path, nargs="+", help="folders with a checkout each; the first is compared with"
    )
    parser.add_argument("--projects", type=Path, nargs="+", required=True, help="folders of projects")
    parser.add_argument("--bugs", type=int, default=40, help="verified bugs of each turn (40)")
    parser.add_argument("--packages", nargs="*", default=[], help="distributions of this Python that the tests need")
    options = parser.parse_args()
    for project in options.projects:
        rates: list[float] = []
        for checkout in options.checkouts:
            made = one_turn(checkout.resolve(), project.resolve(), options.bugs, options.packages)
            rates.append(60 * made["counts"].get("kept", 0) / made["seconds"])
            what = made["counts"] or made["refused"]
            rate = f"{made['seconds']:.0f} s  {rates[-1]:.1f} bugs a minute"
            print(f"{project.name}  {checkout}  {rate}  {what}", flush=True)
        factors = ", ".join(f"{rate / rates[0]:.1f}" for rate in rates[1:]) if rates[0] else "no bugs in the first"
        print(f"{project.name}  times as fast: {factors}", flush=True)


def one_turn(checkout: Path, project: Path, bugs: int, packages: list[str]) -> dict[str, Any]:
    """What one process did: seconds, and the number of candidates by outcome, or why the project was refused."""
    argv = [sys.executable, "-c", TURN, str(checkout), str(project), str(bugs), *packages]
    return json.loads(subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
