"""Any command-line agent as a solver: it works on the repository in a sandbox; what it leaves there is its patch."""

from __future__ import annotations

import json
import os
import posixpath
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.data.interchange.files import FORMATS
from gumshoe.collect.episode.spec import task_ref
from gumshoe.collect.packs import pack_text, with_pack
from gumshoe.collect.run.control import run_parallel
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import DatasetError, PolicyError, ToolFailure
from gumshoe.eval.arms.arm import Attempt, AttemptKey, EvalRun, Hooks, Pair, Solution
from gumshoe.eval.arms.solvers.sandboxed import Ran, RelayTarget, run_with_endpoint
from gumshoe.eval.checks import Checks, Endpoint, count_lines
from gumshoe.eval.config import CommandConfig
from gumshoe.eval.grader import Grader, Submission
from gumshoe.records import ContextPack, Trajectory
from gumshoe.storage import append_line, open_append
from gumshoe.tools.runs.interpreters import our_program

__all__ = ["CommandSolver"]

ATTEMPTS = "attempts.jsonl"
NO_ENTRY = "{}"
NO_PACK = "There is no report on this problem."
FILES = {
    "problem_file": "problem.md",
    "pack_file": "pack.json",
    "pack_text": "pack.md",
    "mcp_config": "mcp.json",
    "trajectory": "record/trajectory.json",
}


class CommandSolver:
    """Runs a program on each attempt. The outcomes are kept, so that a stopped evaluation can be resumed.

    The program gets the problem, with the pack below it, as text and as files; it can also get the pack from an MCP
    server. The endpoint is its only way out of the sandbox. Its record of what it did is read if its format is known.

    Args:
        title: the arm's title.
        config: the program.
        folder: where patches and trajectories of the arm are kept.
    """

    def __init__(self, title: str, config: CommandConfig, folder: Path) -> None:
        self.title = f"solver, {title}"
        self.name = config.title
        self._config = config
        self._folder = folder

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Checks the program's endpoint; the attempts that the folder lacks are left."""
        config = self._config
        left = max(0, attempts - count_lines(self._folder / ATTEMPTS))
        if left and config.endpoint is not None:
            key = os.environ.get(config.api_key_env, "none")
            headers = {"Authorization": f"Bearer {key}"}
            checks.endpoint(Endpoint("the solver", f"{config.endpoint.rstrip('/')}/models", headers))
        return left

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The outcome of each attempt; attempts that were not reached are missing.

        Raises:
            SandboxError: a sandbox broke.
            PolicyError: the program did not start, or its endpoint answered nothing.
        """
        cache = JsonlCache(self._folder / ATTEMPTS)
        todo = {self._key(one): one for one in attempts if cache.get(self._key(one)) is None}
        hooks.begun(len(attempts), len(attempts) - len(todo))
        run_parallel(
            todo.items(),
            lambda item: cache.keep(item[0], self._attempt(item[1], run, hooks)),
            workers=run.config.workers,
            control=run.control,
            on_tick=hooks.tick,
        )
        known = {one.key: (one, facts) for one in attempts if (facts := cache.get(self._key(one))) is not None}
        grader = Grader(run.out / "grades.jsonl", run.config.sandbox)
        answers = {key: Submission(one.task, one.oracle, facts["patch"]) for key, (one, facts) in known.items()}
        grader.grade(answers.values(), run.control, run.config.workers)
        return {
            key: Solution(
                grader.resolved(answer),
                patch=answer.patch,
                trajectory=known[key][1]["trajectory"],
                steps=known[key][1]["steps"],
                tokens=known[key][1]["tokens"] or None,
                cost_usd=known[key][1]["cost_usd"],
                seconds=known[key][1]["seconds"],
                tests=grader.describe(answer),
            )
            for key, answer in answers.items()
        }

    def close(self) -> None:
        """Nothing stays open."""

    def _attempt(self, attempt: Attempt, run: EvalRun, hooks: Hooks) -> dict[str, Any]:
        """Runs the program once and returns the outcome."""
        config = self._config
        endpoint = RelayTarget(config.endpoint, os.environ.get(config.api_key_env, "none"), config.timeout_s)
        sandbox = open_sandbox(attempt.task, config.sandbox_in(run.config.sandbox), trusted=False)
        try:
            workspace = Workspace(attempt.task, sandbox)
            given = _write_files(sandbox, attempt)
            argv = [_filled(word, given) for word in config.argv]
            env = {name: _filled(value, given) for name, value in config.env.items()}
            ran = run_with_endpoint(sandbox, argv, env, endpoint, timeout_s=config.timeout_s, control=run.control)
            self._check(ran, endpoint)
            patch = _patch(workspace)
            trajectory = self._trajectory(sandbox, given["trajectory"], attempt, patch)
        finally:
            sandbox.close()
            endpoint.close()
        if trajectory is not None:
            self._keep(trajectory)
            hooks.done(trajectory)
        return {
            "task_id": attempt.task.id,
            "patch": patch,
            "exit_code": ran.exit_code,
            "output": ran.output,
            "trajectory": "" if trajectory is None else trajectory.id,
            "steps": None if trajectory is None else len(trajectory.steps),
            "tokens": endpoint.usage.tokens,
            "cost_usd": None if trajectory is None else trajectory.usage.cost_usd,
            "seconds": round(ran.seconds, 3),
        }

    def _check(self, ran: Ran, endpoint: RelayTarget) -> None:
        """Raises PolicyError for a program or server that does not work, which says nothing about the task."""
        if endpoint.failure and not endpoint.answered:
            raise PolicyError(f"{self.name}: its endpoint did not respond: {endpoint.failure}")
        if ran.exit_code not in (0, None) and not endpoint.answered:
            last = (ran.output.strip().splitlines() or ["no output"])[-1]
            raise PolicyError(
                f"{self.name} ended with exit code {ran.exit_code} before it queried a model: {last[:200]}"
            )

    def _trajectory(self, sandbox: WardenSandbox, path: str, attempt: Attempt, patch: str) -> Trajectory | None:
        """The program's own record, as a trajectory of the task; None if it left no readable one."""
        if self._config.trajectory is None:
            return None
        kept = self._folder / "records" / f"{self._key(attempt)}{FORMATS[self._config.trajectory].endings[0]}"
        try:
            data = sandbox.read_file(path, inside=False)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(data)
            found = next(iter(FORMATS[self._config.trajectory].read(kept)))
        except (OSError, StopIteration, DatasetError):
            return None
        name = f"{attempt.task.id}#{attempt.sample}.{self._key(attempt)[:12]}"
        return found.model_copy(update={"id": name, "task": task_ref(attempt.task), "patch": patch})

    def _keep(self, trajectory: Trajectory) -> None:
        with open_append(self._folder / "trajectories.jsonl") as file:
            append_line(file, trajectory.model_dump_json())

    def _key(self, attempt: Attempt) -> str:
        """What the outcome depends on, as a digest."""
        pack = None if attempt.pack is None else _dumped(attempt.pack)
        return digest(attempt.task.hash, pack, self._config.model_dump(mode="json"), attempt.sample)


def _dumped(pack: ContextPack) -> dict[str, Any]:
    """The pack in the form that is digested, unchanged for packs from before reproductions existed."""
    return pack.model_dump(mode="json", exclude=None if pack.reproduction else {"reproduction"})


def _write_files(sandbox: WardenSandbox, attempt: Attempt) -> dict[str, str]:
    """Puts the problem and the pack beside the workspace; returns what the placeholders stand for."""
    folder = posixpath.join(posixpath.dirname(sandbox.support), "solver")
    told = with_pack(attempt.task, attempt.pack).problem_statement
    pack = "null" if attempt.pack is None else json.dumps(attempt.pack.model_dump(mode="json"), indent=1)
    read = NO_PACK if attempt.pack is None else pack_text(attempt.pack)
    paths = {name: f"{folder}/{file}" for name, file in FILES.items()}
    server = [
        sandbox.python,
        *our_program(sandbox.support, "programs.pack_server"),
        paths["pack_file"],
        paths["pack_text"],
    ]
    texts = {
        "problem_file": told,
        "pack_file": pack,
        "pack_text": read,
        "mcp_config": json.dumps({"mcpServers": {"gumshoe": {"command": server[0], "args": server[1:]}}}, indent=1),
        "trajectory": NO_ENTRY,
    }
    for name, path in paths.items():
        sandbox.write_file(path, texts[name].encode(), inside=False)
    return {**paths, "mcp_command": shlex.join(server), "problem": told}


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders filled in once: the inserted text is not searched for more."""
    for name, value in values.items():
        if text == f"{{{name}}}":
            return value
    for name, value in values.items():
        if name != "problem":
            text = text.replace(f"{{{name}}}", value)
    return text


def _patch(workspace: Workspace) -> str:
    try:
        return workspace.patch()
    except ToolFailure:
        return ""
