"""How fast traces are collected and exported on this machine, and what they cost.

    python -m benchmarks.speed.collect                       everything
    python -m benchmarks.speed.collect --only overhead steps --json bench-collect.json
    python -m benchmarks.speed.collect --rows 10000 --only export

The policies answer instantly, so that all measured time is ours or the sandbox's.

    collect    the scripted teacher on whole tasks, by number of workers
    overhead   the share of an episode's wall time that is spent waiting for the sandbox to carry out a command
    steps      what 50 and 100 turns cost: host CPU time and bytes on disk
    export     rows per second and peak memory, in a process of its own
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.store import read_trajectories
from gumshoe.config import validate
from gumshoe.env.sandboxes.channel import Channel
from gumshoe.records import Completion, ToolCall

PARTS = ("collect", "overhead", "steps", "export")


def main() -> int:
    """Runs the benchmark and prints its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", default="casebook", help="task source (casebook)")
    parser.add_argument("--episodes", type=int, default=16, help="episodes of each measurement (16)")
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8], help="numbers of workers (1 2 4 8)")
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000], help="trajectories to export")
    parser.add_argument("--sandbox", default="auto", help="sandbox (auto)")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="parts (all)")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args()
    parts: dict[str, Callable[[argparse.Namespace, Path], list[dict[str, Any]]]] = {
        "collect": over_workers,
        "overhead": overhead,
        "steps": over_steps,
        "export": exports,
    }
    figures: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory(prefix="gumshoe-bench-") as folder:
        for name in PARTS:
            if name in options.only:
                figures[name] = parts[name](options, Path(folder))
                show(name, figures[name])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def over_workers(options: argparse.Namespace, home: Path) -> list[dict[str, Any]]:
    """Episodes per minute, CPU time and bytes, by number of workers."""
    return [_measure(options, home / f"workers{count}", count) for count in options.workers]


def _measure(options: argparse.Namespace, out: Path, workers: int) -> dict[str, Any]:
    config = teacher(options, out, workers)
    own, began = time.process_time(), time.monotonic()
    result = collect(config)
    wall, own = time.monotonic() - began, time.process_time() - own
    size = (out / "trajectories.jsonl").stat().st_size
    return {
        "workers": workers,
        "episodes": result.finished,
        "episodes a minute": round(result.finished / wall * 60, 1),
        "host CPU s per episode": round(own / result.finished, 3),
        "KB per episode": round(size / result.finished / 1000, 1),
    }


def overhead(options: argparse.Namespace, home: Path) -> list[dict[str, Any]]:
    """The share of wall time spent in the sandbox's own commands, one worker."""
    config = teacher(options, home / "overhead", 1)
    with waiting() as waited:
        began = time.monotonic()
        result = collect(config)
        wall = time.monotonic() - began
    turns = [step for one in read_trajectories(Path(config.out)) for step in one.steps]
    in_tools = sum(seen.duration_s for step in turns for seen in step.observations)
    return [
        {
            "episodes": result.finished,
            "s per episode": round(wall / result.finished, 3),
            "share in the sandbox": round(sum(waited) / wall, 3),
            "share of turns in tools": round(in_tools / sum(step.duration_s for step in turns), 3),
        }
    ]


def over_steps(options: argparse.Namespace, home: Path) -> list[dict[str, Any]]:
    """What 50 and 100 turns cost. The last row says how many times as much the longer episodes take."""
    rows = [_long(options, home, steps) for steps in (50, 100)]
    ratio: dict[str, Any] = {"steps": "ratio", "episodes": ""}
    for name in list(rows[0])[2:]:
        ratio[name] = round(rows[1][name] / rows[0][name], 2)
    return [*rows, ratio]


def _long(options: argparse.Namespace, home: Path, steps: int, episodes: int = 6) -> dict[str, Any]:
    script = home / f"script{steps}.jsonl"
    looks = [("listdir", {}), ("grep", {"pattern": "def "})]
    with script.open("w", encoding="utf-8") as file:
        for number in range(steps):
            name, arguments = looks[number % len(looks)]
            call = ToolCall(id=f"c{number}", name=name, arguments=arguments)  # pyright: ignore[reportArgumentType]
            file.write(Completion(text="[seek 0.5] I look.", tool_calls=(call,)).model_dump_json() + "\n")
    out = home / f"steps{steps}"
    config = make_config(
        options, out, {"kind": "scripted", "script": str(script)}, limit=episodes, limits={"steps": steps}
    )
    own = time.process_time()
    result = collect(config)
    own = time.process_time() - own
    return {
        "steps": steps,
        "episodes": result.finished,
        "host CPU s per episode": round(own / result.finished, 3),
        "KB per episode": round((out / "trajectories.jsonl").stat().st_size / result.finished / 1000, 1),
    }


def exports(options: argparse.Namespace, home: Path) -> list[dict[str, Any]]:
    """Exports many copies of a few trajectories."""
    config = teacher(options, home / "origin", 2)
    collect(config)
    return [_export(home, home / "origin", rows) for rows in options.rows]


def _export(home: Path, run: Path, rows: int) -> dict[str, Any]:
    """Exports that many trajectories in a process of its own, whose memory is measured."""
    many = home / f"many{rows}"
    many.mkdir()
    lines = (run / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    with (many / "trajectories.jsonl").open("w", encoding="utf-8") as file:
        for number in range(rows):
            line = json.loads(lines[number % len(lines)])
            line["id"] = f"{line['id']}-{number}"
            file.write(json.dumps(line) + "\n")
    dataset = home / f"dataset{rows}"
    measure = (
        "import resource, sys; from gumshoe.cli import main; code = main(sys.argv[1:]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    )
    argv = [sys.executable, "-c", measure, "export", str(many), "--out", str(dataset)]
    began = time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    wall = time.monotonic() - began
    return {
        "trajectories": rows,
        "input MB": (many / "trajectories.jsonl").stat().st_size // 10**6,
        "dataset MB": sum(path.stat().st_size for path in dataset.rglob("*.parquet")) // 10**6,
        "seconds": round(wall, 1),
        "trajectories/s": round(rows / wall),
        "peak MB": int(done.stdout.split()[-1]) // 1024,
    }


@contextmanager
def waiting() -> Generator[list[float]]:
    """Collects the seconds of each sandbox exchange in this context: what a command takes there and on the way."""
    asked = Channel.exchange
    waited: list[float] = []

    def exchange(self: Channel, *arguments: Any, **options: Any) -> Any:
        began = time.monotonic()
        try:
            return asked(self, *arguments, **options)
        finally:
            waited.append(time.monotonic() - began)

    Channel.exchange = exchange
    try:
        yield waited
    finally:
        Channel.exchange = asked


def teacher(options: argparse.Namespace, out: Path, workers: int) -> CollectConfig:
    """A run of the scripted teacher."""
    return make_config(
        options,
        out,
        {"kind": "teacher", "explore": 0.0},
        limit=options.episodes,
        workers=workers,
    )


def make_config(
    options: argparse.Namespace, out: Path, policy: dict[str, Any], *, limit: int, **more: Any
) -> CollectConfig:
    """A run on the benchmark's tasks."""
    data: dict[str, Any] = {
        "out": str(out),
        "tasks": {"source": options.source, "limit": limit},
        "policy": policy,
        "sandbox": {"kind": options.sandbox},
        "workers": 1,
        **more,
    }
    return validate(CollectConfig, data, origin="benchmark")


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints the rows as a table."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
