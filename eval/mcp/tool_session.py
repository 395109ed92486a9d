"""The config of `gumshoe mcp`, and what one client works with: a sandbox with a copy of the repository, its tools, and
investigations.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import Field, JsonValue, field_validator

from gumshoe.collect.config import AgentConfig, InvestigatorConfig, LimitsConfig, PolicyConfig
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies import make_policy
from gumshoe.collect.run.control import Control, Interrupted, run_cancellable
from gumshoe.collect.run.play import play_one
from gumshoe.config import Config
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.sandboxes.staging import staged_paths
from gumshoe.env.tasks.folders import load_local
from gumshoe.errors import SandboxClosed, SandboxError
from gumshoe.protocols import Sandbox, close_policy
from gumshoe.records import Decision, Edit, Observation, Task, ToolCall, Trajectory
from gumshoe.tools.toolbox import decisions_of

STEPS = 1_000_000
"""So many that no session gets there: a client may call as often as it likes, but the environment wants a limit."""
PLACE_ARGUMENTS = ("path", "function")
"""The arguments of tools that begin with a path."""
T = TypeVar("T")


class McpConfig(Config):
    """Which tools a client gets, and who investigates."""

    tools: tuple[str, ...] = Field(
        default=("listdir", "view", "grep", "eval", "suspects", "trace", "whatif", "vary", "pdb"),
        min_length=1,
        description="tools that a client gets besides `investigate`; those that end an episode are refused",
    )
    policy: PolicyConfig = Field(
        default=InvestigatorConfig(), description="who investigates; investigator needs no model"
    )
    agent: AgentConfig = Field(default=AgentConfig(kind="seeker"), description="the agent of an investigation")
    limits: LimitsConfig = Field(default=LimitsConfig(wall_s=600), description="how much one investigation may use")
    command_timeout_s: float = Field(default=60.0, gt=0, description="seconds one call of a tool may take")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where programs run")
    sessions: int = Field(default=8, ge=1, description="clients at a time, each with a sandbox of its own (HTTP)")
    idle_s: float = Field(default=1800.0, gt=0, description="seconds without a request that end a session (HTTP)")

    @field_validator("tools")
    @classmethod
    def _no_end(cls, tools: tuple[str, ...]) -> tuple[str, ...]:
        roles = decisions_of(())
        wrong = next((name for name in tools if roles.get(name) in (Decision.REPORT, Decision.SUBMIT)), None)
        if wrong is not None:
            raise ValueError(f"{wrong} ends an episode, and clients of this server have no episodes")
        return tools

    @field_validator("policy")
    @classmethod
    def _no_answer(cls, policy: PolicyConfig) -> PolicyConfig:
        if policy.kind in ("teacher", "replay", "human"):
            raise ValueError(
                f"policy {policy.kind} cannot investigate: it would need an answer, a recording or a terminal"
            )
        return policy


class Repository:
    """A folder, and how its tests are run: `options` are those of the task source `local`, without `path`."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.folder = folder
        names = sorted({str(folder.absolute()), str(folder.resolve())}, key=len, reverse=True)
        self._own_path = re.compile(rf"(?:file://)?(?:{'|'.join(map(re.escape, names))})(/|(?![\w.-]))")
        self._options = dict(options)

    def task(self, problem: str = "") -> Task:
        """The folder as it is now. Raises TaskError."""
        options = {**self._options, **({"problem_statement": problem} if problem else {})}
        ((task, _),) = load_local(self.folder, **options)
        return task

    def mapped(self, value: Any, root: str) -> Any:
        """JSON in which absolute paths of the folder, which many clients send, lead to its copy at `root`.

        Arguments that are a place become relative paths. Of the folder /home/me/shop, with its copy at /work,

            {"path": "/home/me/shop/cart.py"}             gives {"path": "cart.py"}
            {"code": "open('/home/me/shop/a.txt')"}       gives {"code": "open('/work/a.txt')"}
        """
        if isinstance(value, str):
            return self._own_path.sub(lambda found: root and f"{root}{found[1]}", value)
        if isinstance(value, list):
            return [self.mapped(item, root) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {key: self.mapped(item, "" if key in PLACE_ARGUMENTS else root) for key, item in items}
        return value


class ToolSession:
    """One client's tools. The sandbox starts with the first call and is kept until the session ends.

    Before each call, files that have changed in the folder are copied into the sandbox. Nothing is ever copied back.
    Calls run one after the other, whatever thread they come from; an investigation has a sandbox of its own and may run
    beside them.
    """

    def __init__(self, repository: Repository, config: McpConfig) -> None:
        self._repository = repository
        self._config = config
        self._calling = threading.Lock()
        self._investigating = threading.Lock()
        self._ids = itertools.count()
        self._closed = threading.Event()
        self._controls: set[Control] = set()
        self._env: DebugEnv | None = None
        self._mirror: FolderMirror | None = None

    def call(self, name: str, arguments: Mapping[str, JsonValue], control: Control) -> Observation:
        """Carries out one call.

        Raises SandboxError if the sandbox broke: the next call gets a new one; TaskError if the folder is gone, or its
        setup fails; ConfigError if the only sandbox available does not isolate; SandboxClosed if the session is closed;
        Interrupted if `control` was aborted, or the session was closed meanwhile.
        """
        with self._calling:
            return self._under(control, lambda: self._call(name, arguments, control))

    def investigate(self, problem: str, control: Control) -> Trajectory:
        """Runs the seeker on the repository as it is now. Raises as `call`, and PolicyError."""
        with self._investigating:
            return self._under(control, lambda: self._investigate(problem, control))

    def close(self) -> None:
        """Ends what is running and removes the sandbox. Idempotent."""
        self._closed.set()
        for control in list(self._controls):
            control.abort()
        with self._investigating, self._calling:
            self._discard()

    def _under(self, control: Control, work: Callable[[], T]) -> T:
        """Does some work that `close` aborts."""
        self._controls.add(control)
        try:
            if self._closed.is_set():
                raise SandboxClosed("the session is closed")
            control.check()
            return work()
        finally:
            self._controls.discard(control)

    def _call(self, name: str, arguments: Mapping[str, JsonValue], control: Control) -> Observation:
        try:
            env = self._up_to_date()
            mapped = self._repository.mapped(dict(arguments), env.sandbox.root)
            call = ToolCall(id=f"call-{next(self._ids)}", name=name, arguments=mapped)
            *_, info = run_cancellable(control, lambda: env.step(call), env.give_up)
            return info["observation"]
        except (Interrupted, SandboxError):
            # A tool that was cut off would answer the next call with the results of this one.
            self._discard()
            raise

    def _up_to_date(self) -> DebugEnv:
        """The environment, its files up to date with the folder."""
        if self._env is None or self._mirror is None:
            limits = {"steps": STEPS, "wall_s": None, "command_timeout_s": self._config.command_timeout_s}
            task = self._repository.task()
            task = task.model_copy(update={"limits": task.limits.model_copy(update=limits)})
            self._mirror = FolderMirror(self._repository.folder, task.workspace.overlay)
            # What a client's model asks for is never trusted.
            self._env = DebugEnv(task, tools=self._config.tools, sandbox=self._config.sandbox, trusted=False)
            self._env.reset()
            return self._env
        for edit in self._mirror.update(self._env.sandbox):
            self._env.toolbox.on_edit(edit, self._env.workspace)
        return self._env

    def _investigate(self, problem: str, control: Control) -> Trajectory:
        task = self._repository.task(problem)
        policy = make_policy(self._config.policy, task, None, 0)
        try:
            return play_one(
                EpisodeSpec(task),
                make_agent(self._config.agent),
                policy,
                sandbox=self._config.sandbox,
                limits=self._config.limits,
                control=control,
            )
        finally:
            close_policy(policy)

    def _discard(self) -> None:
        env, self._env, self._mirror = self._env, None, None
        if env is not None:
            env.close()


Fact = tuple[int, int, int]
"""Mode, time of the last change in nanoseconds, size in bytes."""


class FolderMirror:
    """Remembers what a folder held when it was copied into a sandbox, and brings the copy up to date later.

    Changes are noticed by mode, time and size. What programs have changed in the sandbox stays, unless the same file
    changes in the folder. What is in `without` is not copied.
    """

    def __init__(self, folder: Path, without: Iterable[str] = ()) -> None:
        self._folder = folder
        self._without = frozenset(without)
        self._known = self._facts()

    def update(self, sandbox: Sandbox) -> list[Edit]:
        """Copies what has changed since the last time, and returns the changes.

        Raises SandboxError if a file cannot be copied: a new sandbox is needed.
        """
        now = self._facts()
        changed = sorted(path for path in now.keys() | self._known.keys() if now.get(path) != self._known.get(path))
        self._known = now
        try:
            return [self._copy(path, sandbox) for path in changed]
        except OSError as error:
            raise SandboxError(f"{self._folder} cannot be copied again: {error}") from None

    def _copy(self, path: str, sandbox: Sandbox) -> Edit:
        try:
            before = sandbox.read_file(path)
        except FileNotFoundError:
            before = None
        try:
            after = (self._folder / path).read_bytes()
        except FileNotFoundError:
            after = None
        if after is not None:
            sandbox.write_file(path, after, mode=(self._folder / path).stat().st_mode & 0o777)
        elif before is not None:
            sandbox.remove_file(path)
        return Edit(path=path, before=_text(before), after=_text(after))

    def _facts(self) -> dict[str, Fact]:
        """The regular files that are copied into sandboxes."""
        found: dict[str, Fact] = {}
        for path in staged_paths(self._folder, self._without):
            try:
                facts = path.lstat()
            except OSError:
                continue
            if path.is_file() and not path.is_symlink():
                found[path.relative_to(self._folder).as_posix()] = (facts.st_mode, facts.st_mtime_ns, facts.st_size)
        return found


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")
