"""Sandboxes of projects, opened when needed and reused."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Self

from gumshoe.env.sandboxes.open import close_pools
from gumshoe.env.synth.bug import Bug
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.journal import VerdictJournal
from gumshoe.env.synth.projects import Project
from gumshoe.env.synth.verify import CandidateVerdict, ProjectVerifier

__all__ = ["VerifierPool"]


class VerifierPool:
    """Lends each batch a sandbox of its project that no other thread is using.

    Sandboxes are used again for other projects, as many as there are workers: starting one takes as long as judging
    several candidates.

    Args:
        journal: has verdicts of earlier runs, and takes in the new ones.
    """

    def __init__(self, config: SynthConfig, journal: VerdictJournal | None = None) -> None:
        self._config = config
        self._journal = journal
        sandbox = config.sandbox
        self._sandbox = sandbox if sandbox.pool else sandbox.model_copy(update={"pool": config.workers})
        self._lock = threading.Lock()
        self._idle: dict[str, list[ProjectVerifier]] = defaultdict(list)
        self._environments: set[str | None] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for name in list(self._idle):
            self._close(name)
        # Other threads may use the sandboxes of other environments.
        close_pools(self._environments)

    def verify(self, project: Project, batch: Sequence[Bug]) -> list[CandidateVerdict]:
        """The verdicts on `batch`. Raises TaskError and SandboxError as ProjectVerifier does."""
        if self._journal is None:
            return self._judge(project, batch)
        return self._journal.verdicts(project.name, batch, partial(self._judge, project))

    def release(self, project: Project) -> None:
        """Closes the sandboxes of a project that no longer needs them."""
        self._close(project.name)

    def _judge(self, project: Project, batch: Sequence[Bug]) -> list[CandidateVerdict]:
        verifier = self._take(project)
        try:
            verdicts = verifier.verify(batch)
        except BaseException:
            verifier.close()
            raise
        with self._lock:
            self._idle[project.name].append(verifier)
        return verdicts

    def _take(self, project: Project) -> ProjectVerifier:
        with self._lock:
            idle = self._idle[project.name]
            if idle:
                return idle.pop()
            self._environments.add(project.suite.environment)
        config = self._config
        return ProjectVerifier(
            project.name, project.path, self._sandbox, timeout_s=config.timeout_s, suite=project.suite
        )

    def _close(self, name: str) -> None:
        with self._lock:
            verifiers = self._idle.pop(name, [])
        for verifier in verifiers:
            verifier.close()
