"""Several checkouts of this repository, compared in turns, in one run: verified bugs a minute in real packages.

    git worktree add ../before COMMIT
    python -m benchmarks.speed.checkouts ../before . --projects tasks/packages/packages/*/projects/* --bugs 40

Each turn is a process of its own that runs the checkout's own code, TURN below: that many verified bugs of a project,
one worker, bubblewrap; the run of the tests on the clean code is included. A project is a folder with pytest tests,
whose package is next to them or in `src`; a set made by `gumshoe harvest` has such folders. What its tests need besides
pytest has to be installed here and named by `--packages`.
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
    """Measures in turns: prints a line for each, and the factors for each project."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="+", help="folders of checkouts; the first is compared with")
    parser.add_argument("--projects", type=Path, nargs="+", required=True, help="folders of projects")
    parser.add_argument("--bugs", type=int, default=40, help="verified bugs of each turn (40)")
    parser.add_argument("--packages", nargs="*", default=[], help="distributions of this Python that the tests need")
    options = parser.parse_args()
    for project in options.projects:
        rates: list[float] = []
        for checkout in options.checkouts:
            made = run_turn(checkout, str(project.resolve()), str(options.bugs), *options.packages)
            rates.append(60 * made["counts"].get("kept", 0) / made["seconds"])
            what = made["counts"] or made["refused"]
            rate = f"{made['seconds']:.0f} s  {rates[-1]:.1f} bugs a minute"
            print(f"{project.name}  {checkout}  {rate}  {what}", flush=True)
        factors = ", ".join(f"{rate / rates[0]:.1f}" for rate in rates[1:]) if rates[0] else "no bugs in the first"
        print(f"{project.name}  times as fast: {factors}", flush=True)


def run_turn(checkout: Path, *words: str) -> Any:
    """What a process that runs a turn with a checkout's own code says in its last line."""
    argv = [sys.executable, "-c", TURN, str(checkout.resolve()), *words]
    return json.loads(subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
