"""One run of the tests on a repaired repository, for all tasks whose answers lead to the same files.

The gold patches of a project's bugs all lead back to the project, and its tests on the same files show nothing new.
A run's key is all that it depends on: the project's files, the paths that the patch changes, the command with its
limits, the environment, the sandbox. Only a sound run without a failing test is shared. Whatever else is seen
is seen in the task's own run.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from pathlib import Path

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_patch
from gumshoe.env.verifier.harness_files import named_test_files
from gumshoe.env.verifier.judge import Verdict, judge
from gumshoe.env.verifier.reports import CheckedRun
from gumshoe.env.verifier.verifier import Verifier
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

__all__ = ["RepairedRuns"]

KEPT = 32
BAD = ("failed", "error")


class RepairedRuns:
    """The verdicts on gold patches in one kind of sandbox. For several threads at a time."""

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
        """What the run with the gold patch depends on; None where more than a project's own files is in it."""
        workspace = task.workspace
        changed = _repaired_paths(task, oracle)
        if changed is None:
            return None
        tests = sorted(set(named_test_files(oracle)) & set(changed))
        place = (workspace.content, workspace.workdir, workspace.environment, sorted(workspace.overlay))
        command = (task.entrypoint, task.readonly, task.limits.model_dump_json())
        return json.dumps([self._config, task.source, place, command, changed, tests])


def _repaired_paths(task: Task, oracle: Oracle) -> list[str] | None:
    """The paths that the gold patch changes, where it leaves the project exactly as its folder has it; else None."""
    workspace = task.workspace
    named = oracle.fail_to_pass or oracle.pass_to_pass
    if task.regime != "debug" or task.setup or oracle.test_patch or not named:
        return None
    if workspace.path is None or workspace.content is None:
        return None
    before = {path: text for path, text in workspace.overlay.items() if text is not None}
    try:
        changed = apply_patch(before, oracle.gold_patch)
    except TaskError:
        return None
    folder = Path(workspace.path)
    after = {**workspace.overlay, **changed}
    return sorted(changed) if all(_is(folder / path, text) for path, text in after.items()) else None


def _is(path: Path, text: str | None) -> bool:
    """Whether a file holds this text."""
    try:
        return text is not None and path.read_bytes() == text.encode("utf-8", "surrogateescape")
    except OSError:
        return False


def _is_sound(checked: CheckedRun) -> bool:
    failing = any(outcome.outcome in BAD for outcome in checked.run.outcomes)
    return not (failing or checked.problems or checked.broken)
