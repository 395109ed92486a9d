"""How fast traces are collected and exported on this machine, and what they cost.

    python benchmarks/bench_collect.py                     workers 1, 2, 4; export of 1,000 and 10,000 trajectories
    python benchmarks/bench_collect.py --rows 100000 --json bench-collect.json

The policy is the scripted teacher, which answers at once, so that everything measured is ours or the sandbox's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.store import read_trajectories
from gumshoe.config import validate


def main() -> int:
    """Runs the benchmark and prints its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="casebook", help="task source (casebook)")
    parser.add_argument("--episodes", type=int, default=12, help="episodes for each number of workers (12)")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4], help="numbers of workers (1 2 4)")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 10_000], help="trajectories to export")
    parser.add_argument("--sandbox", default="auto", help="sandbox (auto)")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gumshoe-bench-") as folder:
        home = Path(folder)
        runs = [_collect(arguments, home / f"run{workers}", workers) for workers in arguments.workers]
        exports = [_export(home, home / f"run{arguments.workers[0]}", rows) for rows in arguments.rows]
    _show("collect", runs)
    _show("export", exports)
    if arguments.json:
        arguments.json.write_text(json.dumps({"collect": runs, "export": exports}, indent=2) + "\n", encoding="utf-8")
    return 0


def _collect(arguments: argparse.Namespace, out: Path, workers: int) -> dict[str, Any]:
    config = validate(
        CollectConfig,
        {
            "out": str(out),
            "tasks": {"source": arguments.source, "limit": arguments.episodes},
            "policy": {"kind": "teacher", "explore": 0.0},
            "sandbox": {"kind": arguments.sandbox},
            "workers": workers,
        },
        origin="benchmark",
    )
    own, began = time.process_time(), time.monotonic()
    result = collect(config)
    wall, own = time.monotonic() - began, time.process_time() - own
    trajectories = list(read_trajectories(out))
    inside = sum(seen.duration_s for one in trajectories for step in one.steps for seen in step.observations)
    turns = sum(step.duration_s for one in trajectories for step in one.steps)
    size = (out / "trajectories.jsonl").stat().st_size
    return {
        "workers": workers,
        "episodes": result.finished,
        "episodes a minute": round(result.finished / wall * 60, 1),
        "host CPU s an episode": round(own / result.finished, 3),
        "KB an episode": round(size / result.finished / 1000, 1),
        "share of turns in tools": round(inside / turns, 3),
    }


def _export(home: Path, run: Path, rows: int) -> dict[str, Any]:
    """Exports so many copies of the run's trajectories in a process of its own, whose memory is measured."""
    many = home / f"many{rows}"
    many.mkdir()
    lines = (run / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    with (many / "trajectories.jsonl").open("w", encoding="utf-8") as file:
        for number in range(rows):
            line = json.loads(lines[number % len(lines)])
            line["id"] = f"{line['id']}-{number}"
            file.write(json.dumps(line) + "\n")
    began = time.monotonic()
    words = ["export", str(many), "--out", str(home / f"dataset{rows}")]
    measure = (
        "import resource, sys; from gumshoe.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", measure, *words], capture_output=True, text=True, check=True)
    wall = time.monotonic() - began
    peak = int(done.stdout.split()[-1])
    return {"trajectories": rows, "seconds": round(wall, 1), "rows/s": round(rows / wall), "peak MB": peak // 1024}


def _show(title: str, rows: list[dict[str, Any]]) -> None:
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
