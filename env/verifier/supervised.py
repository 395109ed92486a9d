"""The tests' process in a sandbox, and its supervisor: started ahead, and run once."""

from __future__ import annotations

import hashlib
import posixpath
import secrets
from collections.abc import Sequence

from pydantic import JsonValue

from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.tox import let_through
from gumshoe.env.verifier.launching import launch
from gumshoe.env.verifier.reports import CheckedRun, check_report
from gumshoe.errors import SandboxError
from gumshoe.records import ExecResult, SessionReply, Task, TestRun

__all__ = ["SupervisedTests"]

LOAD_S, GRACE_S = 120.0, 60.0


class SupervisedTests:
    """One run of a task's tests, whose process has loaded the test runner and nothing of the repository.

    Make it before the patch is in the sandbox: what is loaded ahead is then not of the patch's making.

    Args:
        tests: paths of the test files that will decide, as far as they are known, to get ready.

    Raises:
        SandboxError: the supervisor cannot be started.
    """

    def __init__(self, sandbox: WardenSandbox, task: Task, output_bytes: int, tests: Sequence[str] = ()) -> None:
        self._sandbox = sandbox
        self._task = task
        started = launch(task.entrypoint, sandbox.support)
        self._direct = started.direct
        self._session = sandbox.start_supervisor()
        request: dict[str, JsonValue] = {
            "argv": list(started.argv),
            "support": sandbox.support,
            "output": output_bytes,
            "root": sandbox.root,
            "environment": {**sandbox.environment, **let_through(sandbox.environment)},
            "direct": started.direct,
            "tests": list(tests),
            "folder": posixpath.join(posixpath.dirname(sandbox.support), f"verdict-{secrets.token_hex(8)}"),
        }
        reply = self._session.request(request, LOAD_S)
        if reply.message is None or "loaded" not in reply.message:
            self.close()
            raise SandboxError(f"task {task.id}: {_ending(reply)}")

    def run(self, changed: Sequence[str], tests: Sequence[str]) -> CheckedRun:
        """Runs the tests.

        Args:
            changed: the paths that the patch has changed.
            tests: the paths of the test files that decide, as they are in the sandbox now.

        Raises:
            SandboxError: the sandbox broke, or the report was changed.
        """
        timeout_s = self._task.limits.command_timeout_s
        order: dict[str, JsonValue] = {"changed": list(changed), "tests": list(tests), "timeout_s": timeout_s}
        reply = self._session.request(order, timeout_s + GRACE_S)
        answer = reply.message or {}
        report, digest = answer.get("report"), answer.get("sha256")
        if not isinstance(report, str):
            return _unfinished(reply)
        try:
            data = self._sandbox.read_file(report, inside=False)
        except OSError:
            return _unfinished(reply)
        if hashlib.sha256(data).hexdigest() != digest:
            raise SandboxError(f"task {self._task.id}: the verifier's report was changed")
        return check_report(data, direct=self._direct)

    def close(self) -> None:
        """Kills the supervisor and what it has started. Idempotent."""
        self._session.close()


def _unfinished(reply: SessionReply) -> CheckedRun:
    result = ExecResult(
        exit_code=reply.exit_code, output=reply.output, duration_s=0.0, timed_out=reply.timed_out, truncated=False
    )
    return CheckedRun(run=TestRun(result=result), problems=(_ending(reply),))


def _ending(reply: SessionReply) -> str:
    """How a supervisor without an answer ended, and the last thing that it said."""
    failed = (reply.message or {}).get("failed")
    how = "took too long" if reply.timed_out else f"ended with exit code {reply.exit_code}"
    last = reply.output.strip().splitlines()[-1:] or ["no output"]
    return f"the verifier's supervisor failed: {failed}" if failed else f"the verifier's supervisor {how}: {last[0]}"
