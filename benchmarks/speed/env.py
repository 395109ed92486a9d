"""How fast the environment is, on this machine, in one run: `make bench-env`.

Docker's quick calls are compared with two baselines: a `docker exec` round trip, which is what a call costs if each is
an exec of its own, and a bare shell that stays open on an exec socket. In all backends, calls that run tests and
verdicts are compared with the bare test command. What is compared is measured in alternation, so that whatever else the
machine does affects both sides alike. The table also sets all other times beside the `docker exec` of the same run, if
there is Docker. The goals are printed with what was reached; with `--strict`, a missed goal gives exit code 1.

    python -m benchmarks.speed.env --repeats 50 --json bench-env.json
    python -m benchmarks.speed.env --set tasks/packages --bug synth/schema/condition-0123abcd
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import docker
import pexpect.fdpexpect
from docker.errors import DockerException
from rich.console import Console

from benchmarks.bug import Bug, find_bug
from benchmarks.speed.env_images import image_figures, timed
from benchmarks.speed.env_report import BARE_BESIDE, goals, show
from gumshoe.env import DebugEnv, SandboxConfig, open_sandbox
from gumshoe.env.verifier import verify
from gumshoe.errors import GumshoeError, SandboxError
from gumshoe.records import Task, ToolCall

Times = list[float]
BACKENDS = ("docker", "podman", "bubblewrap", "local")
TOOLS = ("listdir", "view", "grep", "eval", "suspects", "whatif", "pdb", "bash", "rewrite", "report", "submit")


def main() -> int:
    """Measures what works here and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50, help="calls timed of each quick operation")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 4, 16], help="worker counts for episodes")
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--strict", action="store_true", help="exit code 1 when a goal is missed")
    parser.add_argument("--set", default="casebook", help="where the bug is from: a source, or the folder of a set")
    parser.add_argument("--bug", default="casebook/build_plan", metavar="ID", help="the bug that is played")
    options = parser.parse_args()
    console = Console()
    bug = find_bug(options.set, options.bug)
    backends: dict[str, Any] = {}
    for backend in options.backends:
        console.print(f"[dim]{backend} ...")
        config = bug.sandbox(backend)
        try:
            if backend == "docker":
                with baselines(config.image) as beside:
                    backends[backend] = measure(bug, config, options.repeats, options.workers, beside)
            else:
                backends[backend] = measure(bug, config, options.repeats, options.workers, {})
        except (GumshoeError, DockerException) as error:
            console.print(f"[yellow]{backend} left out: {error}")
    if not backends:
        return 2
    show(backends, console)
    if options.json is not None:
        options.json.write_text(json.dumps(backends, indent=2) + "\n", encoding="utf-8")
    return int(options.strict and not all(goal.met for goal in goals(backends)))


def in_turns(repeats: int, **works: Callable[[], object]) -> dict[str, Times]:
    """Seconds of `repeats` calls of each, one after the other, after one uncounted round."""
    rounds = [{name: timed(work) for name, work in works.items()} for _ in range(repeats + 1)]
    return {name: [each[name] for each in rounds[1:]] for name in works}


def summary(times: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile, in milliseconds."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    return {"median_ms": 1e3 * statistics.median(ordered), "p95_ms": 1e3 * p95, "n": len(ordered)}


@contextmanager
def baselines(image: str) -> Generator[dict[str, Callable[[], object]]]:
    """`true` in a bare container: as an exec of its own, and in a shell that stays open on an exec socket."""
    client = docker.from_env()
    box: Any = client.containers.run(image, ["sleep", "3600"], detach=True, network_mode="none", init=True)
    try:
        stream: Any = client.api.exec_start(_shell(client, box), socket=True, tty=True)
        with closing(stream):
            shell = pexpect.fdpexpect.fdspawn(stream.fileno(), timeout=10, encoding="utf-8")
            shell.delaybeforesend = None
            shell.send("stty -echo; PS1=\n")
            numbers = iter(range(10**9))

            def ask() -> None:
                number = next(numbers)
                shell.send(f"true; echo end-{number}-$?\n")
                shell.expect_exact(f"end-{number}-0")

            yield {"docker exec": lambda: box.exec_run(["true"]), "bare shell": ask}
    finally:
        box.remove(force=True)
        client.close()


def _shell(client: Any, box: Any) -> str:
    return client.api.exec_create(box.id, ["sh"], stdin=True, tty=True)["Id"]


def call(env: DebugEnv, name: str, **arguments: Any) -> None:
    """One call that must not fail."""
    info = env.step(ToolCall(id="1", name=name, arguments=arguments))[4]
    failure = info["observation"].failure
    if failure is not None:
        raise SystemExit(f"{name} failed: {failure.message}")


@contextmanager
def episode_env(task: Task, config: SandboxConfig) -> Generator[DebugEnv]:
    """An environment with every tool and no step limit."""
    unlimited = task.model_copy(update={"limits": task.limits.model_copy(update={"steps": 10**6})})
    env = DebugEnv(unlimited, tools=TOOLS, sandbox=config, trusted=True)
    try:
        yield env
    finally:
        env.close()


@contextmanager
def paused_env(bug: Bug, config: SandboxConfig) -> Generator[DebugEnv]:
    """An episode in which the debugger is paused at the bug."""
    with episode_env(bug.task, config) as env:
        env.reset(seed=0)
        call(env, "pdb", command=f"b {bug.path}:{bug.line}\nc")
        yield env


def snapshot_times(env: DebugEnv, repeats: int) -> Times:
    """Seconds of a snapshot and its restore, each after a command that may have changed the paused program: of one that
    is still what it was, nothing would have to be kept.
    """
    kept: list[str] = []
    works: dict[str, Callable[[], object]] = {
        "a command": lambda: call(env, "pdb", command="p 1 + 1"),
        "snapshot": lambda: kept.append(env.snapshot()),
        "another": lambda: call(env, "pdb", command="p 1 + 1"),
        "restore": lambda: env.restore(kept.pop()),
    }
    times = in_turns(repeats, **works)
    return [sum(each) for each in zip(times["snapshot"], times["restore"], strict=True)]


def quick_times(bug: Bug, config: SandboxConfig, repeats: int, beside: Mapping[str, Callable[[], object]]) -> Any:
    """Seconds of the calls that run no tests, alternating with the baselines."""
    numbers: Iterator[int] = iter(range(10**9))
    with paused_env(bug, config) as env:
        quick = {
            "view": lambda: call(env, "view", path=bug.path),
            "listdir": lambda: call(env, "listdir"),
            "grep": lambda: call(env, "grep", pattern="def "),
            "bash true": lambda: call(env, "bash", command="true"),
            "rewrite": lambda: call(env, "rewrite", path="note.txt", code=f"{next(numbers)}\n"),
            "pdb p": lambda: call(env, "pdb", command="p 1 + 1"),
            "pdb locals": lambda: call(env, "pdb", command="locals"),
            "pdb b": lambda: call(env, "pdb", command=f"b {bug.path}:{bug.line}"),
        }
        times = in_turns(repeats, **quick, **beside)
        few = max(5, repeats // 10)
        times["snapshot and restore, paused"] = snapshot_times(env, few)
        return {**times, **in_turns(few, **{"pdb n": lambda: call(env, "pdb", command="n")})}


def test_times(bug: Bug, config: SandboxConfig, repeats: int, leave_out: Collection[str]) -> dict[str, Times]:
    """Seconds of the calls that run the tests, alternating with the bare test command in the same sandbox."""
    with episode_env(bug.task, config) as env:
        env.reset(seed=0)
        failing = [
            *bug.task.entrypoint,
            *(each.id for each in env.workspace.run_tests().outcomes if each.outcome == "failed"),
        ]
        variants = [{"path": bug.path, "line": bug.line, "do": f"n = {number}"} for number in range(8)]
        _check_variants(env, variants)
        works: dict[str, Callable[[], object]] = {
            "bare test command": lambda: env.sandbox.run(bug.task.entrypoint),
            "one failing test": lambda: env.sandbox.run(failing),
            "eval": lambda: call(env, "eval"),
            "suspects": lambda: call(env, "suspects"),
            "whatif, 8 variants": lambda: call(env, "whatif", variants=variants),
            "whatif, 8 variants, quick": lambda: call(env, "whatif", variants=variants, quick=True),
            "pdb restart, b, c": lambda: call(env, "pdb", command=f"restart\nb {bug.path}:{bug.line}\nc"),
        }
        return in_turns(repeats, **{name: work for name, work in works.items() if name not in leave_out})


def _check_variants(env: DebugEnv, variants: list[dict[str, Any]]) -> None:
    """Raises SandboxError if a variant cannot be made: work that was not done would look fast."""
    arguments: dict[str, Any] = {"variants": variants, "quick": True}
    info = env.step(ToolCall(id="1", name="whatif", arguments=arguments))[4]
    errors = [each["error"] for each in info["observation"].data.get("variants", ()) if each.get("error")]
    if errors or not info["observation"].data.get("variants"):
        raise SandboxError(f"whatif cannot change the line of the bug: {errors[:1] or info['observation'].text}")


def ending_times(bug: Bug, config: SandboxConfig, repeats: int) -> dict[str, Times]:
    """Seconds of the calls that end an episode."""
    times: dict[str, Times] = {"report": [], "submit": []}
    with episode_env(bug.task, config) as env:
        for _ in range(repeats):
            for name, arguments in (("report", bug.report()), ("submit", {})):
                env.reset(seed=0)
                call(env, "rewrite", **bug.edit)
                times[name].append(timed(lambda name=name, arguments=arguments: call(env, name, **arguments)))
    return times


def verdict_times(bug: Bug, config: SandboxConfig, repeats: int) -> dict[str, Times]:
    """Seconds of a verdict, alternating with the bare test command in a sandbox that is there."""
    task, oracle = bug.task, bug.oracle

    def judge() -> None:
        verdict = verify(task, oracle, oracle.gold_patch, config, trusted=True)
        if not verdict.resolved:
            raise SandboxError(f"the gold patch is not resolved: {verdict.explanation}")

    with open_sandbox(task, config, trusted=True) as sandbox:
        return in_turns(repeats, **{BARE_BESIDE: lambda: sandbox.run(task.entrypoint), "verdict": judge})


def reset_times(task: Task, config: SandboxConfig, repeats: int) -> dict[str, Times]:
    """Seconds of a reset."""
    with episode_env(task, config) as env:
        return in_turns(repeats, reset=lambda: env.reset(seed=0))


def episode(bug: Bug, config: SandboxConfig) -> None:
    """One scripted debugging episode."""
    with episode_env(bug.task, config) as env:
        env.reset(seed=0)
        for name, arguments in bug.episode():
            call(env, name, **arguments)


def episodes_per_minute(bug: Bug, config: SandboxConfig, workers: int) -> float:
    """Scripted episodes per minute with `workers` threads."""
    count = max(4, workers)
    with ThreadPoolExecutor(workers) as threads:
        list(threads.map(lambda _: episode(bug, config), range(min(workers, 2))))
        seconds = timed(lambda: list(threads.map(lambda _: episode(bug, config), range(count))))
    return 60 * count / seconds


def memory_of_open_sandboxes(task: Task, config: SandboxConfig, count: int) -> float:
    """Resident memory of this process, in MB, with `count` sandboxes open."""
    boxes = [open_sandbox(task, config, trusted=True) for _ in range(count)]
    try:
        status = Path("/proc/self/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    finally:
        for box in boxes:
            box.close()


def measure(bug: Bug, config: SandboxConfig, repeats: int, workers: Sequence[int], beside: Mapping[str, Any]) -> Any:
    """Everything about one backend."""
    few = max(5, repeats // 5)
    memory = memory_of_open_sandboxes(bug.task, config, 16)
    times = {
        **quick_times(bug, config, repeats, beside),
        **test_times(bug, config, few, leave_out=()),
        **ending_times(bug, config, 3),
        **(verdict_times(bug, config, few) if config.kind != "local" else {}),
        **reset_times(bug.task, config, few),
    }
    if config.kind == "docker":
        of_image, megabytes = image_figures(bug.task, config, few)
        times |= of_image
        memory_of_image = {"memory_mb_image": megabytes}
    else:
        memory_of_image = {}
    return {
        "operations": {name: summary(seconds) for name, seconds in times.items()},
        "episodes_per_minute": {
            f"{count} workers{', no test server' * (not server)}": episodes_per_minute(
                bug, config.model_copy(update={"test_server": server}), count
            )
            for count in workers
            for server in (True, False)
        },
        "memory_mb_16_open": memory,
        **memory_of_image,
    }


if __name__ == "__main__":
    sys.exit(main())
