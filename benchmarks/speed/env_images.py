"""What `env.py` measures for a task that comes as an image: resets, restores, memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import docker

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.swebench_export import write_context
from gumshoe.records import Task, ToolCall, WorkspaceSpec

WITHOUT = {"workdir": "/testbed", "environment": None}
"""How the image's workspace differs: resets and restores need nothing that the tests import."""


def image_figures(task: Task, config: SandboxConfig, repeats: int) -> tuple[dict[str, list[float]], float]:
    """Seconds of resets and of a restore, and MB of memory that an episode's sandbox uses."""
    times: dict[str, list[float]] = {"reset, image": [], "restore, image": []}
    with _as_image(task, config.image) as packed, closing(DebugEnv(packed, sandbox=config, trusted=True)) as env:
        for _ in range(repeats):
            times["reset, image"].append(timed(lambda: env.reset(seed=0)))
        kept = env.snapshot()
        memory = _memory_mb()
        for _ in range(repeats):
            env.step(ToolCall(id="1", name="rewrite", arguments={"path": "note.txt", "code": "x\n"}))
            times["restore, image"].append(timed(lambda: env.restore(kept)))
    return times, memory


def timed(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@contextmanager
def _as_image(task: Task, base: str) -> Generator[Task]:
    """The task in an image of its own, which is removed at the end."""
    client: Any = docker.from_env()
    name = "gumshoe-bench-task:latest"
    placed = task.model_copy(update={"workspace": task.workspace.model_copy(update=WITHOUT)})
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder) / "context"
        write_context(placed, context, base)
        client.images.build(path=str(context), tag=name, rm=True, forcerm=True, network_mode="none")
    try:
        yield task.model_copy(update={"workspace": WorkspaceSpec(image=name, workdir="/testbed")})
    finally:
        client.images.remove(name, force=True)
        client.close()


def _memory_mb() -> float:
    """Memory that the newest container uses, in MB."""
    client: Any = docker.from_env()
    try:
        youngest = client.containers.list(limit=1)[0]
        return youngest.stats(stream=False)["memory_stats"]["usage"] / 1e6
    finally:
        client.close()
