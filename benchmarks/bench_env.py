"""How fast the environment is, on this machine, in one run: `make bench-env`.

Every figure of a backend stands beside two baselines of the same run: a `docker exec` round trip, which is what one
call costs where each is an exec of its own, and a bare shell that stays open on an exec socket.

    python benchmarks/bench_env.py --repeats 50 --json bench-env.json
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
import pexpect.fdpexpect
from docker.errors import DockerException
from rich.console import Console
from rich.table import Table

from gumshoe.env import DebugEnv, SandboxConfig, open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import GumshoeError
from gumshoe.records import Task, ToolCall

Times = list[float]
BACKENDS = ("docker", "bubblewrap", "local")
TOOLS = ("listdir", "view", "grep", "eval", "pdb", "bash", "rewrite", "submit")
FILE = "buildplan/graph.py"
LINE = 55
ENVIRONMENT = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def timed(repeats: int, work: Callable[[], object]) -> Times:
    """Seconds of each of `repeats` calls, after one that is not counted."""
    work()
    times: Times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return times


def summary(times: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile, in milliseconds."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {"median_ms": 1e3 * statistics.median(ordered), "p95_ms": 1e3 * p95, "n": len(ordered)}


@contextmanager
def container(image: str) -> Generator[Any]:
    """A bare container without network."""
    client = docker.from_env()
    made = client.containers.run(image, ["sleep", "3600"], detach=True, network_mode="none", init=True)
    try:
        yield made
    finally:
        made.remove(force=True)
        client.close()


def docker_exec(image: str, repeats: int) -> Times:
    """`true` as an exec of its own."""
    with container(image) as box:
        return timed(repeats, lambda: box.exec_run(["true"]))


def bare_shell(image: str, repeats: int) -> Times:
    """`true` in a shell that stays open on an exec socket."""
    with container(image) as box:
        api = box.client.api
        started = api.exec_create(box.id, ["sh"], stdin=True, tty=True)
        stream = api.exec_start(started["Id"], socket=True, tty=True)
        shell = pexpect.fdpexpect.fdspawn(stream.fileno(), timeout=10, encoding="utf-8")
        shell.delaybeforesend = None
        shell.send("stty -echo; PS1=\n")
        numbers = iter(range(10**9))

        def work() -> None:
            number = next(numbers)
            shell.send(f"true; echo end-{number}-$?\n")
            shell.expect_exact(f"end-{number}-0")

        times = timed(repeats, work)
        stream.close()
        return times


def bare_tests(task: Task, config: SandboxConfig, repeats: int) -> Times:
    """The task's test command, run in the sandbox by itself."""
    sandbox = open_sandbox(task, config, trusted=True)
    try:
        return timed(repeats, lambda: sandbox.run(task.entrypoint))
    finally:
        sandbox.close()


def call(env: DebugEnv, name: str, **arguments: Any) -> None:
    """One call that must not fail."""
    info = env.step(ToolCall(id="1", name=name, arguments=arguments))[4]
    failure = info["observation"].failure
    if failure is not None:
        raise SystemExit(f"{name} failed: {failure.message}")


def tool_times(task: Task, config: SandboxConfig, repeats: int) -> dict[str, Times]:
    """Seconds of every tool in one backend."""
    unlimited = task.model_copy(update={"limits": task.limits.model_copy(update={"steps": 10**6})})
    env = DebugEnv(unlimited, tools=TOOLS, sandbox=config, trusted=True)
    few = max(3, repeats // 10)
    try:
        env.reset(seed=0)
        times = {
            "view": timed(repeats, lambda: call(env, "view", path=FILE)),
            "listdir": timed(repeats, lambda: call(env, "listdir")),
            "grep": timed(repeats, lambda: call(env, "grep", pattern="def ")),
            "bash true": timed(repeats, lambda: call(env, "bash", command="true")),
            "eval": timed(few, lambda: call(env, "eval")),
        }
        call(env, "pdb", command=f"b {FILE}:{LINE}\nc")
        times["pdb p"] = timed(repeats, lambda: call(env, "pdb", command="p 1 + 1"))
        times["pdb b"] = timed(few, lambda: call(env, "pdb", command=f"b {FILE}:{LINE - 2}"))
        times["pdb n"] = timed(few, lambda: call(env, "pdb", command="n"))
        times["pdb restart"] = timed(few, lambda: call(env, "pdb", command="restart\nc"))
        times["rewrite"] = timed(
            repeats, lambda: call(env, "rewrite", path="note.txt", code=f"{time.perf_counter()}\n")
        )
        return times
    finally:
        env.close()


def reset_times(task: Task, config: SandboxConfig, repeats: int) -> Times:
    """Seconds of a reset that starts a fresh sandbox."""
    env = DebugEnv(task, tools=TOOLS, sandbox=config, trusted=True)
    try:
        return timed(max(3, repeats // 10), lambda: env.reset(seed=0))
    finally:
        env.close()


def episode(task: Task, config: SandboxConfig) -> None:
    """One scripted debugging episode: look, run, break, see, repair, run, submit."""
    env = DebugEnv(task, tools=TOOLS, sandbox=config, trusted=True)
    try:
        env.reset(seed=0)
        call(env, "listdir")
        call(env, "eval")
        call(env, "view", path=FILE)
        call(env, "pdb", command=f"b {FILE}:{LINE}\nc\nlocals")
        call(env, "rewrite", path=FILE, start=LINE, end=LINE, code="        return list(self._orders[target])")
        call(env, "eval")
        call(env, "submit")
    finally:
        env.close()


def episodes_per_minute(task: Task, config: SandboxConfig, workers: int) -> float:
    """Scripted episodes a minute with `workers` threads."""
    count = max(8, 2 * workers)
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda _: episode(task, config), range(count)))
    return 60 * count / (time.perf_counter() - began)


def memory_of_open_sandboxes(task: Task, config: SandboxConfig, count: int) -> float:
    """Resident memory of this process, in MB, with `count` sandboxes open."""
    boxes = [open_sandbox(task, config, trusted=True) for _ in range(count)]
    try:
        return _resident_mb()
    finally:
        for box in boxes:
            box.close()


def _resident_mb() -> float:
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def measure(task: Task, backend: str, repeats: int, workers: Sequence[int]) -> dict[str, Any]:
    """Everything about one backend."""
    config = SandboxConfig(kind=backend, env=ENVIRONMENT)  # pyright: ignore[reportArgumentType]
    return {
        "memory_mb_16_open": memory_of_open_sandboxes(task, config, 16),
        "tools": {name: summary(times) for name, times in tool_times(task, config, repeats).items()},
        "bare test command": summary(bare_tests(task, config, max(3, repeats // 10))),
        "cold reset": summary(reset_times(task, config, repeats)),
        "episodes_per_minute": {str(count): episodes_per_minute(task, config, count) for count in workers},
    }


def show(result: Mapping[str, Any], console: Console) -> None:
    """One table: milliseconds, and how many times faster than a `docker exec` round trip."""
    exec_ms = result["baselines"].get("docker exec", {}).get("median_ms")
    table = Table(title="median ms / p95 ms (times faster than docker exec)")
    table.add_column("operation")
    for backend in result["backends"]:
        table.add_column(backend, justify="right")
    for name, figures in result["baselines"].items():
        table.add_row(f"[dim]{name}", f"{figures['median_ms']:.2f} / {figures['p95_ms']:.2f}")
    rows = ["bare test command", "cold reset"]
    names = [*next(iter(result["backends"].values()))["tools"], *rows]
    for name in names:
        cells = [_cell(part["tools"].get(name) or part[name], exec_ms) for part in result["backends"].values()]
        table.add_row(name, *cells)
    for count in next(iter(result["backends"].values()))["episodes_per_minute"]:
        cells = [f"{part['episodes_per_minute'][count]:.0f}" for part in result["backends"].values()]
        table.add_row(f"episodes a minute, {count} workers", *cells)
    cells = [f"{part['memory_mb_16_open']:.0f}" for part in result["backends"].values()]
    table.add_row("host MB, 16 sandboxes open", *cells)
    console.print(table)


def _cell(figures: Mapping[str, float], exec_ms: float | None) -> str:
    text = f"{figures['median_ms']:.2f} / {figures['p95_ms']:.2f}"
    return text if exec_ms is None else f"{text} ({exec_ms / figures['median_ms']:.1f}x)"


def main() -> int:
    """Measures what works here and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50, help="calls timed of each quick operation")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16], help="worker counts for episodes")
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    console = Console()
    task = next(task for task, _ in load_tasks("casebook") if task.id == "casebook/build_plan")
    result: dict[str, Any] = {"baselines": {}, "backends": {}}
    for backend in options.backends:
        console.print(f"[dim]{backend} ...")
        try:
            if backend == "docker":
                image = SandboxConfig().image
                result["baselines"]["docker exec"] = summary(docker_exec(image, options.repeats))
                result["baselines"]["bare shell"] = summary(bare_shell(image, options.repeats))
            result["backends"][backend] = measure(task, backend, options.repeats, options.workers)
        except (GumshoeError, DockerException) as error:
            console.print(f"[yellow]{backend} left out: {error}")
    if not result["backends"]:
        return 2
    show(result, console)
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
