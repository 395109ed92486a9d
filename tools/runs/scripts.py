"""Runs a task's tests under one of the programs of `env/inside` that take a request, such as `runs.whatif`."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from gumshoe.protocols import Workspace
from gumshoe.records import ExecResult, TestOutcome
from gumshoe.tools.runs.interpreters import debug_argv

__all__ = [
    "NO_TRACEBACKS",
    "describe_end",
    "end_running",
    "pytest_options",
    "read_outcomes",
    "read_written",
    "run_script",
    "script_folder",
]

_MARGIN_S = 2.0
FILE_BYTES, LINE_BYTES = 16 << 20, 64 << 10
UNREADABLE_LINES = 100
PENDING = ("not_run", "crashed")
"""What a record says of tests until their outcomes are known."""
_SIGNALS = {128 + each.value: each.name for each in signal.Signals}
NO_TRACEBACKS = "--tb=no"
"""The option with which pytest prints no tracebacks. Its plugins, ours among them, know of failures all the same."""


def script_folder(workspace: Workspace, name: str) -> str:
    """Where the request of a script lies, and what it writes."""
    return f"{workspace.sandbox.support}/{name}"


def run_script(workspace: Workspace, name: str, request: Mapping[str, Any], options: str = "") -> ExecResult:
    """Runs the entrypoint under `runs.NAME`, whose folder is emptied before; the workspace is put back behind it.

    Args:
        workspace: where.
        name: of the script: `whatif` or `trace`.
        request: for the script, without its `deadline_s`, which leaves it time to end before it is killed.
        options: of pytest, beside those that are set. It prints no tracebacks, since nobody reads them.
    """
    sandbox, timeout = workspace.sandbox, workspace.task.limits.command_timeout_s
    sandbox.prepare_support()
    folder = script_folder(workspace, name)
    data = json.dumps({**request, "deadline_s": max(1.0, timeout - _MARGIN_S)})
    sandbox.run(["rm", "-rf", folder], timeout=timeout)
    sandbox.write_file(f"{folder}/request.json", data.encode(), inside=False)
    before = sandbox.snapshot()
    argv = debug_argv(sandbox, workspace.debug_entrypoint, f"runs.{name}")
    addopts = pytest_options(sandbox.environment, options, NO_TRACEBACKS)
    variables = {"PYTEST_ADDOPTS": addopts, f"GUMSHOE_{name.upper()}": f"{folder}/request.json"}
    ran = sandbox.run(argv, env=variables, timeout=timeout + _MARGIN_S, warm=True)
    sandbox.restore(before)
    return ran


def read_written(workspace: Workspace, path: str) -> bytes:
    """What a script wrote; nothing where it wrote nothing."""
    try:
        return workspace.sandbox.read_file(path, inside=False)
    except OSError:
        return b""


def pytest_options(environment: Mapping[str, str], *options: str) -> str:
    """What PYTEST_ADDOPTS has to be so that options are added to those that are set."""
    return " ".join(filter(None, (environment.get("PYTEST_ADDOPTS"), *options)))


def read_outcomes(data: bytes, exit_code: int | None) -> tuple[TestOutcome, ...]:
    """The outcomes in a file of JSON lines, the last of which counts for each test.

    A test whose lines differ in their outcome is an error, except for lines that say that it is `not_run` or `crashed`:
    these are written before its outcome is known. Otherwise a program that adds lines of its own could pass or
    fail a test, by chance even as a verdict asks for it: whose lines come last is a matter of time.

    A line that was cut off, or is no outcome of at most 64 KiB, is passed over; after 100 of those and after 16 MiB the
    rest is not read.

    Args:
        data: the file's content.
        exit_code: of the process that wrote it; None if it was killed for taking too long.
    """
    outcomes: dict[str, TestOutcome] = {}
    unreadable = 0
    for line in io.BytesIO(data[:FILE_BYTES]):
        try:
            outcome = TestOutcome.model_validate_json(line if len(line) <= LINE_BYTES else b"")
            known = outcomes.get(outcome.id)
            if known is None or known.outcome in PENDING or known.outcome == outcome.outcome:
                outcomes[outcome.id] = outcome
            elif outcome.outcome not in PENDING:
                outcomes[outcome.id] = _twice(outcome.id)
        except ValidationError:
            unreadable += 1
            if unreadable > UNREADABLE_LINES:
                break
    return end_running(outcomes.values(), exit_code)


def end_running(outcomes: Iterable[TestOutcome], exit_code: int | None) -> tuple[TestOutcome, ...]:
    """The outcomes; of a test that was still running when its process ended, it says how that came."""
    ended: dict[str, str] = {"outcome": "timed_out" if exit_code is None else "crashed"}
    ended["message"] = f"the process {describe_end(exit_code)}"
    return tuple(each.model_copy(update=ended) if each.outcome == "crashed" else each for each in outcomes)


def describe_end(exit_code: int | None) -> str:
    """What a process did at its end that has this exit code, None for one that was killed for taking too long."""
    if exit_code is None:
        return "took too long"
    ended_by = _SIGNALS.get(exit_code)
    return f"was ended by {ended_by}" if ended_by else f"ended with exit code {exit_code}"


def _twice(test: str) -> TestOutcome:
    return TestOutcome(id=test, outcome="error", message="the run gives this test different outcomes")
