"""A verifier that gets ready in the background, while an agent works."""

from __future__ import annotations

import functools
import os
from concurrent.futures import Future, ThreadPoolExecutor

from gumshoe.env.config import SandboxConfig
from gumshoe.env.verifier.judge import Verdict
from gumshoe.env.verifier.verifier import Verifier
from gumshoe.records import Oracle, Task

__all__ = ["VerifierAhead"]

THREADS = 8


class VerifierAhead:
    """One verdict's sandbox, prepared before its patch is known: the original repository is in it, and the tests'
    process waits. The arguments are those of `Verifier`; what it raises is raised by `verify`.
    """

    def __init__(self, task: Task, oracle: Oracle | None, config: SandboxConfig, *, trusted: bool) -> None:
        self._coming = _threads(os.getpid()).submit(_prepared, task, oracle, config, trusted)

    def wait(self) -> None:
        """Waits until it is ready. Raises as `Verifier`."""
        self._coming.result()

    def verify(self, patch: str) -> Verdict:
        """The one verdict; afterwards the sandbox is gone. Raises as `Verifier` and `Verifier.verify`."""
        with self._coming.result() as verifier:
            return verifier.verify(patch)

    def close(self) -> None:
        """Removes the sandbox, in the background where it is not ready yet. Idempotent."""
        if not self._coming.cancel():
            self._coming.add_done_callback(_close)


def _prepared(task: Task, oracle: Oracle | None, config: SandboxConfig, trusted: bool) -> Verifier:
    verifier = Verifier(task, oracle, config, trusted=trusted)
    try:
        verifier.prepare()
    except BaseException:
        verifier.close()
        raise
    return verifier


def _close(coming: Future[Verifier]) -> None:
    if coming.exception() is None:
        coming.result().close()


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    del process
    return ThreadPoolExecutor(THREADS, thread_name_prefix="gumshoe-verdict")
