"""Any command-line agent as a solver: it works on the repository in a sandbox; what it leaves there is its patch.

The endpoint of one model is the program's only way out of the sandbox.
"""

from __future__ import annotations

import base64
import os
import posixpath
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2

from gumshoe.cache import JsonlCache, digest
from gumshoe.collect.data.formats import FORMATS
from gumshoe.collect.episode.spec import task_ref
from gumshoe.collect.packs import with_pack
from gumshoe.collect.run.control import Control, run_cancellable, run_parallel
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.workspace import Workspace
from gumshoe.errors import DatasetError, PolicyError, SandboxError, ToolFailure
from gumshoe.eval.arms.arm import Attempt, AttemptKey, Checks, Endpoint, EvalRun, Hooks, Pair, Solution, Solver
from gumshoe.eval.config import CommandConfig
from gumshoe.eval.grader import Grader, Submission
from gumshoe.records import Trajectory, Usage
from gumshoe.storage import append_line, count_lines, open_append
from gumshoe.tools.runs.commands import our_program

ATTEMPTS = "attempts.jsonl"
NOT_STARTED = 127
"""The exit code for a program that could not be started, as the relay and shells have it."""
GIVEN_FILES = {"problem_file": "problem.md", "pack_file": "pack.json", "trajectory": "record/trajectory.json"}
PLACEHOLDER = re.compile(r"\{(\w+)\}")
RELAYED_PATH = re.compile(r"/[\w./-]*")
SHORTEST_S = 0.05
"""How long the program is waited for at least, even after its time."""
TAIL = 4000
"""Characters of the program's last output that are kept."""


@dataclass(frozen=True)
class _Ended:
    """What is kept of an attempt: how the program ended, the patch that it left, and what is known of its work."""

    task_id: str
    patch: str
    exit_code: int | None
    output: str
    trajectory: str
    steps: int | None
    tokens: int
    cost_usd: float | None
    seconds: float


class CommandSolver(Solver):
    """Runs a program on each attempt. The outcomes are kept, so that a stopped evaluation can be resumed.

    The program gets the problem, with the pack below it, as text and as files. The endpoint is its only way out of the
    sandbox. Its record of what it did is read if its format is known; `folder` keeps patches and trajectories.
    """

    def __init__(self, title: str, config: CommandConfig, folder: Path) -> None:
        self.title = f"solver, {title}"
        self.name = config.title
        self._config = config
        self._folder = folder

    def check(self, tasks: Sequence[Pair], attempts: int, checks: Checks) -> int:
        """Checks the program's endpoint; so many attempts are left as the folder has too few.

        Those made with an earlier config of the program are counted as if they were this one's.
        """
        config = self._config
        left = max(0, attempts - count_lines(self._folder / ATTEMPTS))
        if left and config.endpoint is not None:
            key = os.environ.get(config.api_key_env, "none")
            headers = {"Authorization": f"Bearer {key}"}
            checks.endpoint(Endpoint("the solver", f"{config.endpoint.rstrip('/')}/models", headers))
        return left

    def solve(self, attempts: Sequence[Attempt], run: EvalRun, hooks: Hooks) -> Mapping[AttemptKey, Solution]:
        """The outcome of each attempt; attempts that were not reached are missing.

        Raises SandboxError if a sandbox broke, and PolicyError as `_check`.
        """
        cache = JsonlCache(self._folder / ATTEMPTS)
        todo = [one for one in attempts if cache.get(self._key(one)) is None]
        hooks.begun(len(attempts), len(attempts) - len(todo))

        def attempt(one: Attempt) -> None:
            cache.keep(self._key(one), asdict(self._attempt(one, run)))
            hooks.done()

        run_parallel(todo, attempt, workers=run.config.workers, control=run.control, on_tick=hooks.tick)
        ended = {one.key: _Ended(**facts) for one in attempts if (facts := cache.get(self._key(one))) is not None}
        submissions = {
            one.key: Submission(one.task, one.oracle, ended[one.key].patch) for one in attempts if one.key in ended
        }
        grader = Grader(run.out / "grades.jsonl", run.config.sandbox)
        grades = grader.grade(submissions, run.control, run.config.workers)
        return {
            key: Solution(
                grades[key].resolved,
                patch=one.patch,
                trajectory=one.trajectory,
                steps=one.steps,
                tokens=one.tokens or None,
                cost_usd=one.cost_usd,
                seconds=one.seconds,
                tests=grades[key].tests,
            )
            for key, one in ended.items()
        }

    def _attempt(self, attempt: Attempt, run: EvalRun) -> _Ended:
        """Runs the program once."""
        config = self._config
        endpoint = _RelayTarget(config, os.environ.get(config.api_key_env, "none"))
        sandbox = open_sandbox(attempt.task, config.sandbox_in(run.config.sandbox), trusted=False)
        try:
            workspace = Workspace(attempt.task, sandbox)
            given = _write_files(sandbox, attempt)
            argv = [_fill_in(word, given) for word in config.argv]
            env = {name: _fill_in(value, given) for name, value in config.env.items()}
            ran = _run_with_endpoint(sandbox, argv, env, endpoint, timeout_s=config.timeout_s, control=run.control)
            self._check(ran, endpoint)
            patch = _read_patch(workspace)
            trajectory = self._trajectory(sandbox, given["trajectory"], attempt, patch)
        finally:
            sandbox.close()
            endpoint.close()
        if trajectory is not None:
            with open_append(self._folder / "trajectories.jsonl") as file:
                append_line(file, trajectory.model_dump_json())
        return _Ended(
            task_id=attempt.task.id,
            patch=patch,
            exit_code=ran.exit_code,
            output=ran.output,
            trajectory="" if trajectory is None else trajectory.id,
            steps=None if trajectory is None else len(trajectory.steps),
            tokens=endpoint.usage.tokens,
            cost_usd=None if trajectory is None else trajectory.usage.cost_usd,
            seconds=round(ran.seconds, 3),
        )

    def _check(self, ran: _Ran, endpoint: _RelayTarget) -> None:
        """Raises PolicyError where the outcome says nothing about the task: the program did not start; it asked its
        endpoint, or one that it does not have, and got no answer; or it has an endpoint, got no answer from it, and
        failed. Without an endpoint, a program that fails has just not succeeded.
        """
        if endpoint.failure and not endpoint.answered:
            raise PolicyError(f"{self.name}: its endpoint did not respond: {endpoint.failure}")
        if self._config.endpoint is None and ran.exit_code != NOT_STARTED:
            return
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

    def _key(self, attempt: Attempt) -> str:
        """What the outcome depends on, as a digest."""
        pack = None if attempt.pack is None else attempt.pack.model_dump(mode="json")
        return digest(attempt.task.hash, pack, self._config.model_dump(mode="json"), attempt.sample)


def _write_files(sandbox: WardenSandbox, attempt: Attempt) -> dict[str, str]:
    """Puts the problem and the pack beside the workspace; returns what the placeholders stand for."""
    folder = posixpath.join(posixpath.dirname(sandbox.support), "solver")
    problem = with_pack(attempt.task, attempt.pack).problem_statement
    pack = "null" if attempt.pack is None else attempt.pack.model_dump_json(indent=1)
    paths = {name: f"{folder}/{file}" for name, file in GIVEN_FILES.items()}
    texts = {"problem_file": problem, "pack_file": pack, "trajectory": "{}"}
    for name, path in paths.items():
        sandbox.write_file(path, texts[name].encode(), inside=False)
    return {**paths, "problem": problem}


def _fill_in(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders filled in; unknown ones stay, such as `{base_url}`, which the relay fills in."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _read_patch(workspace: Workspace) -> str:
    try:
        return workspace.patch()
    except ToolFailure:
        return ""


class _RelayTarget:
    """Sends requests from a sandbox to the program's endpoint and nowhere else. It adds the key, which stays outside.

    Attributes:
        usage: what the answers say was used.
        answered: how many requests succeeded.
        failure: why the last failed request failed.
    """

    def __init__(self, config: CommandConfig, key: str) -> None:
        self._base_url = config.endpoint
        headers = {"authorization": f"Bearer {key}"}
        self._client = httpx2.Client(headers=headers, timeout=config.timeout_s, follow_redirects=False, trust_env=False)
        self.usage = Usage()
        self.answered = 0
        self.failure = ""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The server's answer to a request from a program in a sandbox; the request's fields may hold anything."""
        path, method = request.get("path"), request.get("method")
        if self._base_url is None or not isinstance(path, str) or method not in ("GET", "POST"):
            return self._refusal(403, "there is no endpoint")
        if not RELAYED_PATH.fullmatch(path) or ".." in path:
            return self._refusal(403, f"{path!r} is no path of the endpoint")
        try:
            body = base64.b64decode(str(request.get("body", "")), validate=True)
            kind = {"content-type": str(request.get("type") or "application/json")}
            reply = self._client.request(method, self._base_url.rstrip("/") + path, content=body, headers=kind)
        except (httpx2.HTTPError, ValueError) as error:
            return self._refusal(502, f"{type(error).__name__}: {error}")
        if reply.is_success:
            self.answered += 1
            self.usage = self.usage + _stated_usage(reply)
        else:
            self.failure = f"status {reply.status_code}: {reply.text[:200]}"
        return _relayed(reply.status_code, reply.headers.get("content-type", "application/json"), reply.content)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _refusal(self, status: int, why: str) -> dict[str, Any]:
        self.failure = why
        return _relayed(status, "text/plain", why.encode())


@dataclass(frozen=True)
class _Ran:
    """How a program ended. `exit_code` is None if it was killed at its time limit; `output` holds its last output."""

    exit_code: int | None
    output: str
    seconds: float


def _run_with_endpoint(
    sandbox: WardenSandbox,
    argv: Sequence[str],
    env: Mapping[str, str],
    endpoint: _RelayTarget,
    *,
    timeout_s: float,
    control: Control,
) -> _Ran:
    """Runs a program to its end in a sandbox, where `{base_url}` in arguments and variables is the endpoint's address.

    Raises SandboxError if the sandbox broke, Interrupted if the run stops.
    """

    def give_up() -> None:
        with suppress(SandboxError):
            sandbox.give_up()

    sandbox.prepare_support()
    began = time.monotonic()
    session = sandbox.open_session([sandbox.python, *our_program(sandbox.support, "programs.relay")])
    try:
        message: dict[str, Any] = {"argv": list(argv), "env": dict(env)}
        output = ""
        while True:
            left = timeout_s - (time.monotonic() - began)
            ask = partial(session.request, message, max(SHORTEST_S, left))
            reply = run_cancellable(control, ask, give_up)
            output = (output + reply.output)[-TAIL:]
            request: Any = (reply.message or {}).get("request")
            if not isinstance(request, dict):
                break
            message = run_cancellable(control, partial(endpoint.answer, request))
        code = (reply.message or {}).get("exit_code", reply.exit_code)
        return _Ran(code if isinstance(code, int) else None, output, time.monotonic() - began)
    finally:
        session.close()


def _relayed(status: int, kind: str, body: bytes) -> dict[str, Any]:
    return {"status": status, "type": kind, "body": base64.b64encode(body).decode("ascii")}


def _stated_usage(reply: httpx2.Response) -> Usage:
    try:
        stated = reply.json()["usage"]
        return Usage(prompt_tokens=stated["prompt_tokens"], completion_tokens=stated["completion_tokens"])
    except (ValueError, KeyError, TypeError):
        return Usage()
