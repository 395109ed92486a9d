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
from gumshoe.env.verifier.judge import Verdict, judge
from gumshoe.env.verifier.reports import CheckedRun
from gumshoe.env.verifier.verifier import READONLY_FILE, UNREADABLE, Verifier
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

__all__ = ["RepairedRuns"]

KEPT = 8
BAD = ("failed", "error")


class RepairedRuns:
    """The verdicts on gold patches in one kind of sandbox. Several threads may share it."""

    def __init__(self, config: SandboxConfig) -> None:
        self._config = config.model_dump_json()
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, CheckedRun] = OrderedDict()

    def verdict(self, verifier: Verifier, task: Task, oracle: Oracle) -> Verdict:
        """The verdict on the task's gold patch, which `verifier` makes where no known run proves it.

        Raises as `Verifier.verify`.
        """
        key = self._key(task, oracle)
        with self._lock:
            known = self._runs.get(key) if key is not None else None
        if known is not None and (verdict := judge(known, oracle)).resolved:
            return verdict
        if key is None:
            return verifier.verify(oracle.gold_patch)
        checked, restored = verifier.observe(oracle.gold_patch)
        if not restored and _is_sound(checked):
            with self._lock:
                self._runs[key] = checked
                while len(self._runs) > KEPT:
                    self._runs.popitem(last=False)
        return judge(checked, oracle, restored)

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


def _is_sound(checked: CheckedRun) -> bool:
    failing = any(outcome.outcome in BAD for outcome in checked.run.outcomes)
    return not (failing or checked.problems or checked.broken)
