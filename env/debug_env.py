"""`DebugEnv`: debugging one task as a Gymnasium environment.

    env = DebugEnv(task, trusted=True)
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(ToolCall(id="1", name="eval"))
    env.close()

Importing this registers it, for `gymnasium.make(ENV_ID, task=..., trusted=True)`.

The environment owns the sandbox, workspace and tools of one episode, and nothing else: no scores, events or prompts.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import gymnasium

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.spaces import MAX_TEXT, ToolAction, action_space, observation_space, tool_call
from gumshoe.env.verifier import Verdict, verify
from gumshoe.env.verifier.rules import CONFIGURATION_FILES, is_configuration
from gumshoe.env.workspace import Workspace
from gumshoe.errors import SandboxError, TaskError, ToolFailure
from gumshoe.protocols import Sandbox
from gumshoe.records import (
    ContextPack,
    Decision,
    Edit,
    ExecResult,
    Failure,
    Observation,
    Oracle,
    StopReason,
    Task,
    TestRun,
    ToolCall,
    ToolSchema,
)
from gumshoe.tools.base import BaseTool
from gumshoe.tools.report import STILL_FAILS
from gumshoe.tools.toolbox import DEBUG_TOOLS, make_toolbox, with_reproduce

ENV_ID = "gumshoe/Debug-v0"
NOT_RUN = ExecResult(exit_code=None, output="", duration_s=0.0)
FILES_NAMED = 5


@dataclass(frozen=True)
class EnvironmentInfo:
    """What an environment offers once its sandbox runs."""

    schemas: tuple[ToolSchema, ...]
    sandbox: str
    """The sandbox's backend."""
    image_digest: str | None

    @property
    def decisions(self) -> Mapping[str, Decision]:
        """The role of every tool."""
        return {tool.name: tool.decision for tool in self.schemas if tool.decision is not None}


@dataclass(frozen=True)
class _Progress:
    """How far an episode is, why it is over if it is, and what `report` handed over if it was called."""

    calls: int = 0
    stop: StopReason | None = None
    context_pack: ContextPack | None = None


@dataclass(frozen=True)
class _Snapshot:
    """What `restore` goes back to."""

    files: str
    """The name of the files' snapshot in the sandbox."""
    tools: dict[str, object]
    edits: tuple[Edit, ...]
    history: tuple[Observation, ...]
    progress: _Progress
    elapsed_s: float


class DebugEnv(gymnasium.Env[dict[str, Any], Any]):
    """An agent in front of one buggy repository.

    Each `reset` gives a fresh copy of the repository in a fresh sandbox. In a step:

    | what | is |
    |---|---|
    | action | a `ToolCall`, or an element of `action_space`: `(tool index, arguments)` |
    | observation | `{"text": str, "failed": 0 or 1}` |
    | reward | after `submit`, 1.0 if the patch repairs the bug, else 0.0; NaN if that is not known |
    | terminated | the agent has called `submit` or `report` |
    | truncated | the task's limit on calls (`Limits.max_calls`) or on the wall clock is reached |
    | info | `observation`, the full record; `stop`, a `StopReason` or None; `verdict`; `context_pack`, the report |

    The reward of `submit` is the verifier's `verdict` on `patch()`, made in a sandbox of its own. It is not known if
    no verdict could be reached for a reason outside the patch. Only here and in `TextWrapper`, of which Gymnasium wants
    a float, is an unknown reward NaN: episodes, records and scores have None. Turns, tokens and money are counted by
    the `Episode` that plays it (`gumshoe.collect.episode.episode`).

    The same calls lead to equal observations, rewards and infos, unless a program prints times, addresses or random
    numbers; durations do not count when records are compared. pytest prints times, which show in the raw output of a
    `Verdict` and nowhere else.

    Attributes:
        verdict: on what was submitted; None before that, and if there is none.

    Args:
        task: what to debug.
        oracle: names the tests that decide; without it, those of the original repository do.
        tools: the tools in use, or their names; default `DEBUG_TOOLS` of `gumshoe.tools.toolbox`, and `reproduce` in
            the regime `issue`. The tools of an MCP server (`mcp:COMMAND`) come after the others, and into
            `action_space` with the first `reset`.
        sandbox: which sandbox, and its limits.
        trusted: the actions come from a built-in script or a person. The `local` backend takes only these, and only on
            built-in tasks, unless the config says `unsafe` (see SandboxConfig).
        eval_on_submit: `submit` asks for the verdict; without it, the reward is NaN and there is no `verdict`.
        render_mode: `ansi` makes `render` return the last observation's text.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as gymnasium declares it

    def __init__(
        self,
        task: Task,
        *,
        oracle: Oracle | None = None,
        tools: Sequence[BaseTool | str] | None = None,
        sandbox: SandboxConfig | None = None,
        trusted: bool = False,
        eval_on_submit: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self.task = task
        self.eval_on_submit = eval_on_submit
        self._oracle = oracle
        self.render_mode = render_mode
        usual = with_reproduce(DEBUG_TOOLS) if task.regime == "issue" else DEBUG_TOOLS
        self.toolbox = make_toolbox(usual if tools is None else tools)
        self.action_space = action_space(self._tools)
        self.observation_space = observation_space(MAX_TEXT)
        self._config = sandbox or SandboxConfig()
        self._trusted = trusted
        self._sandbox: WardenSandbox | None = None
        self._workspace: Workspace | None = None
        self._begin()

    @property
    def workspace(self) -> Workspace:
        """The episode's workspace. Raises SandboxError before the first `reset` and after `close`."""
        if self._workspace is None:
            raise SandboxError("the environment has no workspace yet: call reset() first")
        return self._workspace

    @property
    def sandbox(self) -> Sandbox:
        """The episode's sandbox. Raises SandboxError before the first `reset` and after `close`."""
        return self.workspace.sandbox

    def describe(self) -> EnvironmentInfo:
        """What is offered since the last `reset`. Raises SandboxError before the first one and after `close`."""
        return EnvironmentInfo(self.toolbox.schemas, self.sandbox.backend, self.sandbox.image_digest)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts an episode in a fresh sandbox; the observation is the problem statement.

        Raises:
            SandboxError: the sandbox cannot be started.
            TaskError: the task's repository is missing or its setup fails.
            ConfigError: the sandbox does not take this policy, or an MCP server does not start.
        """
        super().reset(seed=seed)
        del options
        self.close()
        self._begin()
        sandbox = open_sandbox(self.task, self._config, trusted=self._trusted)
        self._sandbox = sandbox
        self._workspace = Workspace(self.task, sandbox)
        before = self._tools
        self.toolbox.on_reset(self._workspace)
        if self._tools != before:
            self.action_space = action_space(self._tools)
        self._started = time.monotonic()
        return self._shown(Observation(tool="reset", text=self.task.problem_statement))

    def step(self, action: ToolCall | ToolAction) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Carries out one call. Raises SandboxError: the sandbox broke, or the episode is over."""
        if self._progress.stop is not None:
            raise SandboxError("the episode is over: call reset() before the next step")
        observation = self._call(action)
        self._progress = self._progress_after(observation)
        stop = self._progress.stop
        submitted = stop is StopReason.SUBMITTED
        self.verdict = self.verify() if submitted and self.eval_on_submit else None
        truncated = stop in {StopReason.CALL_LIMIT, StopReason.WALL_LIMIT}
        seen, info = self._shown(observation)
        return seen, self._reward() if submitted else 0.0, stop is not None and not truncated, truncated, info

    def snapshot(self) -> str:
        """Keeps the episode as it is now: files, breakpoints, the paused program of the debugger, the shell's working
        folder and exported variables, the calls made and the time used.

        The name is good for `restore` until the next `reset`.
        """
        name = f"snapshot-{len(self._snapshots)}"
        files, tools = self.workspace.snapshot(), self.toolbox.snapshot(self.workspace)
        edits, history = tuple(self.workspace.edits), tuple(self.toolbox.history)
        elapsed_s = time.monotonic() - self._started
        self._snapshots[name] = _Snapshot(files, tools, edits, history, self._progress, elapsed_s)
        return name

    def is_whole(self, snapshot: str) -> bool:
        """Whether `restore` brings back from this snapshot all that the tools held. Ask before the next step.

        Raises SandboxError: there is no such snapshot.
        """
        return self.toolbox.is_whole(self._find_snapshot(snapshot).tools)

    def restore(self, snapshot: str) -> None:
        """Goes back to a snapshot of this episode, as a search over repairs does.

        The debugger's program is paused where it was, unless it had threads: then it starts over. What a shell runs in
        the background, and its variables that are not exported, are lost. Servers begin anew if they were called. An
        episode that has ended since goes on; the limits on calls and time count from where the snapshot was made.

        Raises SandboxError: there is no such snapshot.
        """
        found = self._find_snapshot(snapshot)
        for edit in self.workspace.restore(found.files):
            self.toolbox.on_edit(edit, self.workspace)
        self.toolbox.restore(found.tools, self.workspace)
        self.workspace.edits[:] = found.edits
        self.toolbox.history[:] = found.history
        self._progress, self.verdict = found.progress, None
        self._started = time.monotonic() - found.elapsed_s

    def patch(self) -> str:
        """What the agent has changed so far, as a unified diff in git's format; empty if that is too much."""
        try:
            return self.workspace.patch()
        except ToolFailure:
            return ""

    def verify(self) -> Verdict | None:
        """The verifier's verdict on `patch()`, in a sandbox of its own.

        None where nothing was changed or too much, and where the tests that decide are hidden and no oracle names them.
        Raises SandboxError: that sandbox broke.
        """
        patch = self.patch()
        if not patch or not self._has_verdicts:
            return None
        try:
            return verify(self.task, self._oracle, patch, self._config, trusted=self._trusted)
        except TaskError as error:
            return Verdict(run=TestRun(result=NOT_RUN), problems=(str(error),), unusable=True)

    def tampering(self) -> tuple[str, ...]:
        """What was done to the harness and, outside of the patch, to the tests' configuration, in the agent's sandbox.

        Raises SandboxError: the sandbox broke.
        """
        try:
            changes = self.workspace.unpatched(CONFIGURATION_FILES)
        except ToolFailure:
            changes = {}
        files = [path for path, sides in sorted(changes.items()) if is_configuration(path, sides)][:FILES_NAMED]
        named = (f"test configuration changed outside of the patch: {path}" for path in files)
        return (*self.sandbox.tampering(), *named)

    def render(self) -> str | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The last observation's text in mode `ansi`, else None."""
        return self._last_text if self.render_mode == "ansi" else None

    def give_up(self) -> None:
        """Ends the call that another thread waits for, so that `close` need not wait for it."""
        sandbox = self._sandbox
        if sandbox is not None:
            with suppress(SandboxError):
                sandbox.give_up()

    def close(self) -> None:
        """Ends the episode and removes the sandbox. Idempotent."""
        sandbox, self._sandbox, self._workspace = self._sandbox, None, None
        self.toolbox.close()
        if sandbox is not None:
            sandbox.close()

    @property
    def _tools(self) -> list[BaseTool]:
        return list(self.toolbox.tools.values())

    def _begin(self) -> None:
        """Forgets the episode before this one."""
        self._started = 0.0
        self._progress = _Progress()
        self.verdict: Verdict | None = None
        self._last_text = ""
        self._ids = itertools.count()
        self._snapshots: dict[str, _Snapshot] = {}

    def _find_snapshot(self, name: str) -> _Snapshot:
        if name not in self._snapshots:
            raise SandboxError(f"the snapshot cannot be used: there is no {name!r}")
        return self._snapshots[name]

    def _call(self, action: ToolCall | ToolAction) -> Observation:
        try:
            call = tool_call(action, self._tools, f"call_{next(self._ids)}")
        except ToolFailure as failure:
            data = Failure(kind=failure.kind, message=failure.message)
            return Observation(tool="", text=failure.message, failure=data)
        return self.toolbox.dispatch(call, self.workspace)

    def _progress_after(self, observation: Observation) -> _Progress:
        """How far the episode is after a call: over where the call or a limit ends it."""
        calls = self._progress.calls + 1
        limit = self._limit_reached(calls)
        tool = self.toolbox.tools.get(observation.tool)
        role = None if tool is None else tool.decision
        if role is Decision.SUBMIT and _is_handed_in(observation, last=limit is not None):
            return replace(self._progress, calls=calls, stop=StopReason.SUBMITTED)
        if role is Decision.REPORT and observation.failure is None:
            pack = ContextPack.model_validate(observation.data["context_pack"])
            return replace(self._progress, calls=calls, stop=StopReason.REPORTED, context_pack=pack)
        return replace(self._progress, calls=calls, stop=limit)

    def _reward(self) -> float:
        """1.0 if the submitted patch resolves the task, else 0.0; NaN if that is not known."""
        verdict = self.verdict
        if not (self.eval_on_submit and self._has_verdicts) or (verdict is not None and verdict.unusable):
            return math.nan
        return float(verdict is not None and verdict.resolved)

    def _limit_reached(self, calls: int) -> StopReason | None:
        """The limit that rules out any further call."""
        if calls >= self.task.limits.max_calls:
            return StopReason.CALL_LIMIT
        wall_s = self.task.limits.wall_s
        return StopReason.WALL_LIMIT if wall_s is not None and time.monotonic() - self._started >= wall_s else None

    @property
    def _has_verdicts(self) -> bool:
        return self.task.regime != "issue" or self._oracle is not None

    def _shown(self, observation: Observation) -> tuple[dict[str, Any], dict[str, Any]]:
        """The observation and the info of a step."""
        self._last_text = observation.text[:MAX_TEXT]
        seen = {"text": self._last_text, "failed": int(observation.failure is not None)}
        info: dict[str, Any] = {"observation": observation, "stop": self._progress.stop}
        if self.verdict is not None:
            info["verdict"] = self.verdict
        if self._progress.context_pack is not None:
            info["context_pack"] = self._progress.context_pack
        return seen, info


def _is_handed_in(observation: Observation, last: bool) -> bool:
    """Whether a call submits. One that was sent back counts if no call is left to submit again."""
    return observation.failure is None or (last and observation.failure.kind == STILL_FAILS)


gymnasium.register(ENV_ID, entry_point="gumshoe.env.debug_env:DebugEnv")
