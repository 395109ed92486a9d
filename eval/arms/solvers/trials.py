"""Finds the changes that make the tests pass: quickly with pytest, otherwise with a run of the entrypoint for each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gumshoe.env.bugs.candidates import Candidate
from gumshoe.env.workspace import Workspace
from gumshoe.errors import SandboxError
from gumshoe.records import TestRun
from gumshoe.tools.runs.interpreters import our_program

__all__ = ["Passing", "try_orders"]

SUITE_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Passing:
    """A change that makes the tests pass, and the run of the entrypoint in which they did."""

    candidate: Candidate
    run: TestRun


def try_orders(workspace: Workspace, orders: Sequence[Sequence[Candidate]]) -> list[Passing | None]:
    """For each order, the first of its changes that makes the tests pass; None if none does.

    Changes are told apart by their digest: one that appears in several orders is tried once. The workspace is left as
    it was. What the quick way finds is confirmed by a run of the entrypoint. Raises SandboxError.
    """
    arguments = _pytest_arguments(workspace.task.entrypoint)
    if arguments is None:
        return _one_by_one(workspace, orders)
    passed = _quickly(workspace, orders, arguments)
    sure: dict[str, TestRun] = {}
    found: list[Passing | None] = []
    for order in orders:
        first = next((one for one in order if passed.get(one.digest)), None)
        if first is not None and first.digest not in sure:
            sure[first.digest] = _run_with(workspace, first)
        found.append(_passing(first, sure) if first is not None else None)
    return found


def _passing(candidate: Candidate, runs: Mapping[str, TestRun]) -> Passing | None:
    run = runs.get(candidate.digest)
    return Passing(candidate, run) if run is not None and run.passed else None


def _pytest_arguments(entrypoint: Sequence[str]) -> tuple[str, ...] | None:
    """The arguments that pytest gets; None if the tests are not run as `PYTHON -m pytest`."""
    return tuple(entrypoint[3:]) if tuple(entrypoint[1:3]) == ("-m", "pytest") else None


def _quickly(
    workspace: Workspace, orders: Sequence[Sequence[Candidate]], arguments: Sequence[str]
) -> Mapping[str, bool]:
    cases = {one.digest: (one.path, one.text) for order in orders for one in order}
    if not cases:
        return {}
    request = {
        "arguments": list(arguments),
        "wall_s": SUITE_TIMEOUT_S,
        "cases": cases,
        "orders": [[one.digest for one in order] for order in orders],
    }
    sandbox = workspace.sandbox
    sandbox.prepare_support()
    result = sandbox.run(
        [workspace.task.entrypoint[0], *our_program(sandbox.support, "bugs.trials")],
        input=json.dumps(request).encode(),
        timeout=SUITE_TIMEOUT_S * (2 * len(cases) + 2),
    )
    try:
        return json.loads(result.output.splitlines()[-1])["passed"]
    except (IndexError, ValueError, KeyError, TypeError):
        said = result.output.strip().splitlines()[-1:] or ["it said nothing"]
        raise SandboxError(f"task {workspace.task.id}: changes cannot be tried there: {said[0]}") from None


def _one_by_one(workspace: Workspace, orders: Sequence[Sequence[Candidate]]) -> list[Passing | None]:
    known: dict[str, TestRun] = {}
    found: list[Passing | None] = []
    for order in orders:
        for one in order:
            if one.digest not in known:
                known[one.digest] = _run_with(workspace, one)
            if known[one.digest].passed:
                break
        found.append(next((passing for one in order if (passing := _passing(one, known)) is not None), None))
    return found


def _run_with(workspace: Workspace, candidate: Candidate) -> TestRun:
    before = workspace.read_text(candidate.path)
    workspace.write_text(candidate.path, candidate.text)
    try:
        return workspace.run_tests(timeout=SUITE_TIMEOUT_S)
    finally:
        workspace.write_text(candidate.path, before)
