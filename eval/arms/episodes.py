"""Episodes of an arm or a solver: who decides in them, a policy or a model folder that is served, and running them.

They are run into a run folder, which a later process can resume.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from gumshoe.collect.config import AgentConfig, AnthropicConfig, CollectConfig, LimitsConfig, OpenAIConfig, PolicyConfig
from gumshoe.collect.data.store import TRAJECTORIES, RunFolder, read_trajectories
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.policies.llm import find_key, with_llm
from gumshoe.collect.policies.registry import check_policy
from gumshoe.collect.run.runner import Runner, RunResult, plan_episodes
from gumshoe.errors import PolicyError
from gumshoe.eval.arms.arm import Checks, Endpoint, EvalRun, Hooks, TaskSample
from gumshoe.eval.config import SamplingConfig, ServeConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.backends import check_model_folder
from gumshoe.protocols import Policy
from gumshoe.records import PolicyInfo, Trajectory
from gumshoe.storage import count_lines


class PolicySource:
    """Makes a policy's config from what an arm or the solver names, and serves the model if it is a folder.

    Messages call it `owner`; `folder` is where the server's log goes.
    """

    def __init__(
        self, owner: str, asked: PolicyConfig | str, serve: ServeConfig, sampling: SamplingConfig, folder: Path
    ) -> None:
        self._owner = owner
        self._asked = asked
        self._configured = None if isinstance(asked, str) else asked
        self._model = Path(asked).expanduser().resolve() if isinstance(asked, str) else None
        self._serve = serve
        self._sampling = sampling
        self._folder = folder
        self._server: ModelServer | None = None

    @cached_property
    def _policy(self) -> PolicyConfig:
        """The policy with the model that llm.yaml names filled in. Raises ConfigError."""
        assert self._configured is not None
        return with_llm(self._configured)

    def info(self, agent: AgentConfig) -> PolicyInfo:
        """Who decides, for the report."""
        asked = self._asked
        kind, model = ("openai", asked) if isinstance(asked, str) else (asked.kind, getattr(asked, "model", ""))
        return PolicyInfo(kind=kind, model=model, agent=agent.kind)

    def check(self, checks: Checks, *, needed: bool) -> None:
        """Checks the model folder, or the policy; its servers only if it is `needed` for an episode."""
        with checks.collect():
            if self._model is not None:
                check_model_folder(self._model)
                return
            policy = self._policy
            if needed:
                check_policy(policy)
                for endpoint in endpoints_of_policy(self._owner, policy):
                    checks.endpoint(endpoint)

    @property
    def planned(self) -> PolicyConfig:
        """The policy as a run folder's config keeps it: a served model is named by its content, not by a port."""
        if self._model is not None:
            return self._served(f"{self._model} {fingerprint(self._model)}", None)
        return self._policy

    @contextmanager
    def ready(self, serving: Callable[[ModelServer], None], *, idle: bool) -> Generator[PolicyConfig]:
        """The policy to ask, with the address of a server that runs until `close`; if `idle`, no server is started.

        Raises ServeError: the model cannot be served, or its server has died for good.
        """
        if self._model is None or idle:
            yield self.planned
            return
        if self._server is None:
            server = ModelServer(self._model, self._serve, log=self._folder / "server.log")
            server.start()
            self._server = server
            serving(server)
        try:
            yield self._served(self._server.model, self._server.base_url)
        except PolicyError:
            self._server.check()
            raise

    def close(self) -> None:
        """Stops the server. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def _served(self, model: str, base_url: str | None) -> OpenAIConfig:
        """How a served model is asked: past calls as text, so that the server's template renders what was trained."""
        sampling = self._sampling
        return OpenAIConfig(
            model=model,
            label=str(self._model) if base_url is not None else None,
            base_url=base_url,
            syntax="template",
            tool_choice=sampling.tool_choice,
            temperature=sampling.temperature,
            max_tokens_name="max_tokens",
            max_tokens=sampling.max_tokens,
            timeout_s=sampling.timeout_s,
        )


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that change when a model folder's files do: contents; for weights, both ends and the size."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as opened:
            digest.update(opened.read(1 << 20))
            opened.seek(max(0, size - (1 << 20)))
            digest.update(opened.read())
    return digest.hexdigest()[:12]


def endpoints_of_policy(owner: str, policy: PolicyConfig) -> Iterator[Endpoint]:
    """The server that a policy names itself; none if it asks OpenAI or Anthropic. Raises ConfigError without a key."""
    if not isinstance(policy, OpenAIConfig | AnthropicConfig) or policy.base_url is None:
        return
    base = policy.base_url
    if isinstance(policy, AnthropicConfig):
        yield Endpoint(owner, f"{base.rstrip('/')}/v1/models", {"x-api-key": find_key(policy)})
    elif policy.azure_api_version or policy.azure_entra:
        # Without a key: deployments differ in how they are asked, but a running server answers any request.
        yield Endpoint(owner, base)
    else:
        yield Endpoint(owner, f"{base.rstrip('/')}/models", {"Authorization": f"Bearer {find_key(policy)}"})


class Episodes:
    """The episodes of an arm or a solver, in a run folder."""

    def __init__(self, folder: Path, policies: PolicySource, agent: AgentConfig, limits: LimitsConfig) -> None:
        self.folder = folder
        self.policies = policies
        self.agent = agent
        self._limits = limits

    def check(self, attempts: int, checks: Checks) -> int:
        """Checks who is asked; returns how many of the attempts the folder lacks."""
        left = max(0, attempts - count_lines(self.folder / TRAJECTORIES))
        self.policies.check(checks, needed=left > 0)
        return left

    def play(
        self,
        run: EvalRun,
        hooks: Hooks,
        *,
        prepare: Callable[[EpisodeSpec], EpisodeSpec | None] = lambda episode: episode,
        wrap: Callable[[Policy, EpisodeSpec], Policy] = lambda policy, episode: policy,
    ) -> tuple[RunResult, dict[TaskSample, Trajectory]]:
        """Plays an episode for each task and sample of an evaluation, unless the folder holds it already.

        `prepare` changes an episode before it is played, or leaves it out with None; `wrap` puts something around its
        policy. Returns how the run ended, and the finished episodes, in the order in which they were planned. Raises
        GumshoeError as `Runner.run`, and ServeError if a model cannot be served, or its server has died for good.
        """
        config = self._config(run)
        with RunFolder(self.folder, config) as opened:
            planned = plan_episodes(config, opened.identity)
            specs = [ready for one in planned if (ready := prepare(one)) is not None]
            opened.plan(len(specs))
            before = sum(spec.id in opened.finished for spec in specs)
            hooks.begun(len(specs), before)
            with self.policies.ready(hooks.serving, idle=run.control.finishing or before == len(specs)) as policy:
                playable = config.model_copy(update={"policy": policy})
                runner = Runner(
                    playable,
                    opened,
                    run.control,
                    on_done=lambda trajectory, is_whole: hooks.done(),
                    wrap=wrap,
                    make_factory=run.make_factory,
                )
                result = runner.run(specs, hooks.tick)
        finished = {trajectory.id: trajectory for trajectory in read_trajectories(self.folder)}
        return result, {(one.task.id, one.sample): finished[one.id] for one in specs if one.id in finished}

    def _config(self, run: EvalRun) -> CollectConfig:
        """The config of the run folder: exactly the evaluation's tasks, and its sandboxes, workers and seed."""
        config = run.config
        ids = tuple(task.id for task, _ in run.tasks)
        return CollectConfig(
            out=str(self.folder),
            tasks=config.tasks.model_copy(update={"ids": ids, "limit": None, "shuffle": False, "tags": {}}),
            agent=self.agent,
            policy=self.policies.planned,
            sandbox=config.sandbox,
            limits=self._limits,
            workers=config.workers,
            seed=config.seed,
            attempts=config.attempts,
        )
