"""A soak: many scripted episodes, killed at random moments and resumed, and nothing lost, doubled or left behind.

    python -m benchmarks.soak.soak    1,000 episodes, 16 workers, 20 SIGKILLs, then resumed to the end
    python -m benchmarks.soak.soak --early 2 --kills 100    each kill up to 2 s after the start, done or not
    python -m benchmarks.soak.soak --seconds 600    at most that long; the same command goes on where this one stopped
    python -m benchmarks.soak.soak --episodes 60 --workers 4 --kills 3 --fresh    a small one

One in twenty of the model's answers is junk and one in twenty episodes is hostile: `--junk 0 --hostile 0` for none.

The figures go to FOLDER/result.json. It exits with 0 if everything held, 1 if something did not, 3 if there is more to
do.
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
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.soak.leftovers import adopt_orphans, containers_of, finished, processes_left
from benchmarks.soak.scenario import SoakModel, is_hostile, make_tasks, serve_model
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.storage import write_atomic

TOOLS = ("view", "grep", "eval", "rewrite", "bash", "submit")


@dataclass
class Account:
    """What has happened so far; kept in soak.json, so that the soak itself can be resumed."""

    kills: int = 0
    seconds: float = 0.0
    replayed: int = 0
    port: int = 0
    junk_answers: int = 0
    left_processes: list[str] = field(default_factory=list)
    left_containers: list[str] = field(default_factory=list)
    left_files: list[str] = field(default_factory=list)


def main() -> int:
    """Runs the soak, or goes on with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("runs/soak"), help="where it is kept (runs/soak)")
    parser.add_argument("--episodes", type=int, default=1000, help="episodes (1000)")
    parser.add_argument("--workers", type=int, default=16, help="workers (16)")
    parser.add_argument("--kills", type=int, default=20, help="times SIGKILL (20)")
    parser.add_argument("--sandbox", default="bubblewrap", help="sandbox (bubblewrap)")
    parser.add_argument("--junk", type=float, default=0.05, help="share of the model's answers that are junk (0.05)")
    parser.add_argument("--hostile", type=float, default=0.05, help="share of the episodes that are hostile (0.05)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long; resumable")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills (0)")
    parser.add_argument("--early", type=float, help="kill up to so many seconds after each start, done or not")
    parser.add_argument("--fresh", action="store_true", help="forget an earlier soak in the folder")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    if options.fresh:
        shutil.rmtree(options.folder, ignore_errors=True)
    adopt_orphans()
    with Soak(options).serving() as soak:
        done = soak.run(time.monotonic() + options.seconds)
    if not done:
        print(f"{soak.finished()} of {options.episodes} episodes, {soak.account.kills} kills: the same command goes on")
        return 3
    return soak.verdict()


class Soak:
    """One soak in its folder, with the options of the command line."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.folder: Path = options.folder
        self.run_folder = self.folder / "run"
        # Not shared, so that anything left there is from this soak.
        self.temporary = (
            Path(tempfile.gettempdir()) / f"soak-{os.getuid()}-{zlib.crc32(str(self.folder).encode()) % 10**6}"
        )
        self.temporary.mkdir(exist_ok=True)
        self.account = self._earlier()
        self.started: list[int] = []
        self.model = SoakModel(options.junk, options.hostile)
        self.config = self.folder / "config.yaml"

    @contextmanager
    def serving(self) -> Generator[Soak]:
        """Serves the soak's model; on the same port again when resumed, since the run's config names the port."""
        with serve_model(self.model, self.account.port) as self.account.port:
            self._write_config()
            yield self

    def run(self, deadline: float) -> bool:
        """Kills and resumes until everything is done, or until the deadline. Returns whether everything is done."""
        began = time.monotonic()
        moments = random.Random(self.options.seed + self.account.kills)
        while self.account.kills < self.options.kills and time.monotonic() < deadline:
            if self.options.early is None:
                self._until(self._next_goal(), moments.uniform(0, 1.0))
            else:
                self._early(moments.uniform(0, self.options.early))
            self.account.kills += 1
            self._count_leftovers()
            self._keep(began)
            began = time.monotonic()
        done = False
        if self.account.kills >= self.options.kills:
            done = self._to_the_end(deadline)
            self._count_leftovers()
        self._keep(began)
        return done

    def finished(self) -> int:
        """How many trajectories there are."""
        return finished(self.run_folder)

    def verdict(self) -> int:
        """Checks what must hold and prints the figures."""
        found = Counter(one.task.id for one in read_trajectories(self.run_folder))
        hostile = {f"soak/{number:04d}" for number in self._hostile()}
        resolved = {one.task.id for one in read_trajectories(self.run_folder) if one.resolved is True}
        failed = list(read_failures(self.run_folder))
        failures = Counter(entry["kind"] for entry in failed)
        # What a hostile program does is not the same each time; its episode starts over, and its journal is kept.
        diverged = {entry["id"].partition("#")[0] for entry in failed if entry["kind"] == "diverged"}
        journals = Counter(".diverged-" in path.name for path in (self.run_folder / "journal").iterdir())
        account = self.account
        facts: dict[str, Any] = {
            "episodes": self.options.episodes,
            "workers": self.options.workers,
            "sandbox": self.options.sandbox,
            "kills": account.kills,
            "trajectories": found.total(),
            "lost": self.options.episodes - len(found),
            "twice": sum(count > 1 for count in found.values()),
            "resolved": len(resolved),
            "hostile": len(hostile),
            "hostile and resolved": sorted(hostile & resolved),
            "junk answers": account.junk_answers,
            "failures of the infrastructure": dict(failures),
            "journals replayed": self._replayed(),
            "journals left": journals[False],
            "journals set aside": journals[True],
            "diverged, not hostile": sorted(diverged - hostile),
            "processes left": account.left_processes,
            "containers left": account.left_containers,
            "temporary files left": account.left_files,
            "minutes": round(account.seconds / 60, 1),
        }
        for name, value in facts.items():
            print(f"{name}: {value}")
        write_atomic(self.folder / "result.json", json.dumps(facts, indent=2) + "\n")
        held = (
            found.total() == self.options.episodes
            and len(resolved) == self.options.episodes - len(hostile)
            and not hostile & resolved
            and not facts["lost"]
            and not facts["twice"]
            and not facts["journals left"]
            and journals[True] == failures["diverged"]
            and not diverged - hostile
            and not (account.left_processes or account.left_containers or account.left_files)
        )
        print("everything held" if held else "something did not hold")
        return 0 if held else 1

    def _next_goal(self) -> int:
        """Episodes to wait for before the next kill, so that all kills fall within the run."""
        left = self.options.episodes - self.finished()
        return self.finished() + max(1, left // (self.options.kills - self.account.kills + 1))

    def _until(self, goal: int, more_s: float) -> None:
        """Starts the run, and kills it a moment after the goal is reached."""
        process = self._start()
        self._wait(process, lambda: self.finished() >= goal or process.poll() is not None)
        time.sleep(more_s)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def _early(self, after_s: float) -> None:
        """Starts the run and kills it so soon that it may not even have begun."""
        process = self._start()
        with suppress(subprocess.TimeoutExpired):
            process.wait(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def _to_the_end(self, deadline: float) -> bool:
        process = self._start()
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=120)
        return self.finished() >= self.options.episodes and process.returncode == 0

    def _start(self) -> subprocess.Popen[bytes]:
        """The run in a process of its own."""
        argv = [sys.executable, "-m", "gumshoe", "collect", str(self.config)]
        log = (self.folder / "output.txt").open("ab")
        with log:
            environ = {**os.environ, "TMPDIR": str(self.temporary)}
            process = subprocess.Popen(argv, stdout=log, stderr=log, env=environ)
        self.started.append(process.pid)
        return process

    def _wait(self, process: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
        while not condition():
            time.sleep(0.05)
        if process.poll() is not None and self.finished() < self.options.episodes:
            raise SystemExit(f"the run ended by itself with {process.returncode}: see {self.folder / 'output.txt'}")

    def _count_leftovers(self) -> None:
        """Waits for whatever a killed run had started to go away, and notes what does not."""
        self.account.left_processes += processes_left()
        # A file stays if no process is left to remove it: there is no point in waiting for files.
        self.account.left_files += [name for name in self._files() if name not in self.account.left_files]
        if self.account.kills >= self.options.kills and self.finished() >= self.options.episodes:
            self.account.left_containers += containers_of(self.started)

    def _files(self) -> list[str]:
        return sorted(path.name for path in self.temporary.iterdir())

    def _hostile(self) -> list[int]:
        return [number for number in range(self.options.episodes) if is_hostile(number, self.options.hostile)]

    def _replayed(self) -> int:
        return (self.run_folder / "run.log").read_text(encoding="utf-8").count(" replays ")

    def _keep(self, began: float) -> None:
        self.account.seconds += time.monotonic() - began
        self.account.junk_answers += self.model.take_junk_count()
        write_atomic(self.folder / "soak.json", json.dumps(vars(self.account), indent=2) + "\n")

    def _earlier(self) -> Account:
        path = self.folder / "soak.json"
        return Account(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Account()

    def _write_config(self) -> None:
        """Writes the tasks and the config of the run."""
        tasks = make_tasks(self.folder / "tasks", self.options.episodes)
        config: dict[str, Any] = {
            "out": str(self.run_folder),
            "tasks": {"source": str(tasks)},
            "agent": {"tools": list(TOOLS)},
            "policy": {
                "kind": "openai",
                "model": "soak",
                "base_url": f"http://127.0.0.1:{self.account.port}/v1",
                "retry": {"first_s": 0.05},
            },
            "sandbox": {"kind": self.options.sandbox},
            "workers": self.options.workers,
        }
        self.config.write_text(yaml.safe_dump(config), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
