"""One run of the tests on a repaired repository, for all tasks whose answers lead to the same files.

The gold patches of a project's bugs all lead back to the project, and its tests on the same files show nothing new.
A run's key is all that it depends on: the project's files, the command with its limits, the environment, the sandbox.
Only a sound run without a failing test is shared. Whatever else is seen is seen in the task's own run.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_patch
from gumshoe.env.ignore import Patterns
from gumshoe.env.verifier.harness_files import is_configuration, is_runner, is_test_file, named_test_files
from gumshoe.env.verifier.judge import judge
from gumshoe.env.verifier.proof import Proof
from gumshoe.env.verifier.repository import READONLY_FILE
from gumshoe.env.verifier.rules import UNREADABLE
from gumshoe.env.verifier.verifier import Verifier
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task, TestRun

__all__ = ["RepairedRuns"]

KEPT = 8
BAD = ("failed", "error")


class RepairedRuns:
    """What is known of repaired repositories in one kind of sandbox. Several threads may share it."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config.model_dump_json()
        self._lock = threading.Lock()
        self._proofs: OrderedDict[str, Proof] = OrderedDict()

    def proof(self, verifier: Verifier, task: Task, oracle: Oracle) -> Proof:
        """What is known of the task's repository with its gold patch; `verifier` finds it out if no earlier task has.

        Raises as `Verifier.verify`.
        """
        key = self._key(task, oracle)
        with self._lock:
            known = self._proofs.get(key) if key is not None else None
        if known is not None and judge(known.run, oracle).resolved and set(oracle.fail_to_pass) <= set(known.tests):
            return known
        proof = verifier.prove(oracle.gold_patch)
        if key is not None and not proof.applied.restored and _is_sound(proof.run):
            with self._lock:
                self._proofs[key] = proof
                while len(self._proofs) > KEPT:
                    self._proofs.popitem(last=False)
        return proof

    def _key(self, task: Task, oracle: Oracle) -> str | None:
        """What the run with the gold patch depends on; None where more than a project's own files goes into it."""
        workspace = task.workspace
        if not _is_the_project(task, oracle):
            return None
        place = (workspace.content, workspace.workdir, workspace.environment)
        command = (task.entrypoint, task.readonly, task.limits.model_dump_json())
        return json.dumps([self._config, task.source, place, command])


def _is_the_project(task: Task, oracle: Oracle) -> bool:
    """Whether the gold patch leaves exactly the files in the project's folder, none of which is put back."""
    workspace = task.workspace
    named = oracle.fail_to_pass or oracle.pass_to_pass
    if task.regime != "debug" or task.setup or oracle.test_patch or not named:
        return False
    if workspace.path is None or workspace.content is None:
        return False
    before = {path: text for path, text in workspace.overlay.items() if text is not None}
    try:
        changed = apply_patch(before, oracle.gold_patch)
    except TaskError:
        return False
    folder, after = Path(workspace.path), {**workspace.overlay, **changed}
    kept = (folder / READONLY_FILE).exists() or _may_be_put_back(after, task, oracle)
    return not kept and all(_is(folder / path, text) for path, text in after.items())


def _may_be_put_back(paths: Iterable[str], task: Task, oracle: Oracle) -> bool:
    """Whether one of the paths is a test or configures them, so that it is not what the patch makes of it."""
    named, readonly = named_test_files(oracle), Patterns(task.readonly)
    return any(
        path in named
        or readonly.match(path)
        or is_test_file(path)
        or is_runner(path, task.entrypoint)
        or is_configuration(path, UNREADABLE)
        for path in paths
    )


def _is(path: Path, text: str | None) -> bool:
    """Whether a file holds this text and is not executable, which it would not be in a sandbox."""
    try:
        same = text is not None and path.read_bytes() == text.encode("utf-8", "surrogateescape")
        return same and not path.stat().st_mode & 0o111
    except OSError:
        return False


def _is_sound(run: TestRun) -> bool:
    return bool(run.outcomes) and not run.result.timed_out and not any(one.outcome in BAD for one in run.outcomes)
