"""The configs of `gumshoe serve` and `gumshoe eval`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from gumshoe.collect.config import AgentConfig, LimitsConfig, PolicyConfig, RayConfig, TasksConfig
from gumshoe.config import Config, ConfigT, WebAddress
from gumshoe.env.config import SandboxConfig

ReferenceName = Literal["solo", "no_pack", "static", "oracle_pack", "debug", "rewrite"]


class ServeConfig(Config):
    """How a model folder is served."""

    backend: Literal["auto", "vllm", "transformers"] = Field(
        default="auto", description="auto: vLLM if it is installed, else transformers' own server"
    )
    python: str | None = Field(default=None, description="Python of the serving environment; null: this one")
    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: int = Field(default=0, ge=0, le=65535, description="port to listen on; 0: a free one")
    name: str | None = Field(default=None, description="name under which it is served; null: a path, which is printed")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="where the model runs")
    dtype: str = Field(
        default="auto",
        description="type of the weights; auto: as stored, on a CPU float32 unless it computes in the stored bfloat16",
    )
    max_length: int = Field(
        default=8192,
        ge=1,
        description="tokens of prompt and answer together (vLLM); with prefix_cache on a CPU, the cache holds twice as "
        "many, for all requests together",
    )
    tool_parser: str = Field(default="hermes", description="vLLM's tool call parser")
    tensor_parallel: int = Field(default=1, ge=1, description="GPUs that share one copy of the model (vLLM)")
    threads: int | None = Field(default=None, ge=1, description="threads on a CPU; null: 2 for a small model, else all")
    prefix_cache: bool = Field(
        default=False,
        description="transformers: compute common beginnings of prompts once, and process requests together; all are "
        "sampled with the settings of the first (vLLM always does this, with separate settings)",
    )
    arguments: tuple[str, ...] = Field(default=(), description="further arguments for the server, passed unchanged")
    startup_s: float = Field(default=600.0, gt=0, description="seconds to wait for /health")
    restarts: int = Field(default=3, ge=0, description="how often a crashed server is restarted")


class SamplingConfig(Config):
    """How a served model is asked."""

    temperature: float = Field(default=0.0, ge=0, description="0: greedy decoding")
    max_tokens: int = Field(default=512, ge=1, description="maximum tokens per response")
    tool_choice: Literal["auto", "required"] = Field(default="auto", description="required: the model must call a tool")
    timeout_s: float = Field(default=600.0, gt=0, description="seconds to wait for one response")


class AnswersConfig(Config):
    """What another explorer has answered: JSON lines, each with `task_id` or `instance_id`."""

    path: str = Field(description="the file")
    format: Literal["places", "codescout", "fastcontext"] = Field(
        description="places: `locations` such as path:start-end; codescout: arguments of localization_finish in "
        "`answer`; fastcontext: text with <final_answer> in `answer`"
    )


class ArmConfig(Config):
    """One thing that is compared: a policy, a model folder that is served for the run, or answers from elsewhere.

    An arm may also take the episodes of an earlier run, or the packs of another arm without their probes, to measure
    what the probes are worth.
    """

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", description="short name; also the name of its run folder"
    )
    label: str = Field(default="", description="name in the report; empty: `name`")
    model: str | None = Field(default=None, description="model folder that is served while the arm runs")
    policy: PolicyConfig | None = Field(default=None, description="policy, if no model folder is given")
    answers: AnswersConfig | None = Field(
        default=None, description="another explorer's answers, instead of running episodes"
    )
    earlier: str | None = Field(
        default=None,
        description="folder of an earlier run, such as arms/NAME of an evaluation: none of it is run again",
    )
    without_probes: str | None = Field(
        default=None, description="name of an arm above: the solver gets its packs without their probes"
    )
    agent: AgentConfig | None = Field(
        default=None, description="the agent; null: the evaluation's; without kind: the evaluation's with these changes"
    )
    baseline: bool = Field(default=False, description="the arm that the others are compared with, task by task")

    @model_validator(mode="after")
    def _exactly_one_source(self) -> Self:
        sources = (self.model, self.policy, self.answers, self.earlier, self.without_probes)
        if sum(one is not None for one in sources) != 1:
            raise ValueError(
                f"arm {self.name!r} needs one of: model, policy, answers (a file), earlier (a run), without_probes (an "
                "arm)"
            )
        if self.agent is not None and not self.runs:
            raise ValueError(f"arm {self.name!r} runs no episodes: remove its agent")
        if self.baseline and self.without_probes is not None:
            raise ValueError(f"arm {self.name!r} has no episodes, so it cannot be the baseline")
        return self

    @property
    def runs(self) -> bool:
        """Whether it runs episodes."""
        return self.model is not None or self.policy is not None

    @property
    def title(self) -> str:
        """What tables and pages call the arm."""
        return self.label or self.name


class CommandConfig(Config):
    """A program that works on the repository in its sandbox, such as a command-line agent.

    In `argv` and `env`, {base_url} stands for the address under which the program reaches the endpoint; {problem_file},
    {pack_file} and {trajectory} for paths; {problem} for the problem with the pack below it.
    """

    argv: tuple[str, ...] = Field(min_length=1, description="the program and its arguments")
    env: dict[str, str] = Field(default_factory=dict, description="environment variables of the program")
    name: str = Field(default="", description="name in the report; empty: the program's")
    packages: tuple[str, ...] = Field(
        default=(), description="distributions of this Python that the program needs (bubblewrap)"
    )
    endpoint: WebAddress | None = Field(
        default=None, description="OpenAI-compatible server, the only address that the program can reach; null: none"
    )
    api_key_env: str = Field(
        default="OPENAI_API_KEY", description="environment variable with the endpoint's key, which stays outside"
    )
    trajectory: Literal["mini-swe-agent", "swe-agent", "atif"] | None = Field(
        default=None, description="format of the record that the program writes to {trajectory}; null: none"
    )
    timeout_s: float = Field(default=1800.0, gt=0, description="time limit for the program on one task, in seconds")

    @property
    def title(self) -> str:
        """Who it is, for the report."""
        return self.name or PurePosixPath(self.argv[0]).name

    def sandbox_in(self, sandbox: SandboxConfig) -> SandboxConfig:
        """An evaluation's sandbox with the program's packages added."""
        return sandbox.model_copy(update={"packages": tuple(dict.fromkeys((*sandbox.packages, *self.packages)))})


class SolverConfig(Config):
    """Who fixes the bugs, given the seekers' reports.

    `scripted` tries small changes on the lines that it was pointed to; `policy` asks a model; `command` runs a program.
    """

    kind: Literal["scripted", "policy", "command"] = Field(
        default="scripted",
        description="scripted: small changes by rule, no model; policy: a model, or any policy; command: a program",
    )
    command: CommandConfig | None = Field(default=None, description="command: the program")
    tries: int = Field(default=12, ge=1, description="scripted: changes it may try on a task")
    model: str | None = Field(default=None, description="policy: model folder that is served for the solver")
    policy: PolicyConfig | None = Field(default=None, description="policy: the policy, if no model folder is given")
    mode: Literal["agent", "one_shot"] = Field(
        default="agent", description="policy: work with tools, or answer once after seeing the locations in the pack"
    )
    pack: str | None = Field(
        default=None, description="policy: path of a Jinja template for packs instead of the bundled one"
    )
    agent: AgentConfig = Field(
        default=AgentConfig(kind="rewrite"), description="policy: the solver's agent, with or without a pack"
    )
    limits: LimitsConfig = Field(
        default=LimitsConfig(), description="policy: limits for each task, the same in every arm"
    )
    references: tuple[ReferenceName, ...] | None = Field(
        default=None,
        description="additional arms (solo, no_pack, static, oracle_pack, debug, rewrite); null: the first "
        "four for a policy, without solo for a script or a command",
    )

    @model_validator(mode="after")
    def _one_solver(self) -> Self:
        given = (self.model is not None) + (self.policy is not None)
        if self.kind == "policy" and given != 1:
            raise ValueError("a solver of kind policy needs either a model folder or a policy")
        if self.kind != "policy" and given:
            raise ValueError(f"a solver of kind {self.kind} uses no model here: set solver.kind to policy")
        if (self.kind == "command") != (self.command is not None):
            raise ValueError("a solver of kind command, and no other, needs the section command")
        agent = next((name for name in self.references or () if name in AGENT_REFERENCES), None)
        if agent is not None and self.kind != "policy":
            why = "a program brings its own tools" if self.kind == "command" else "a scripted solver is not an agent"
            raise ValueError(f"{why}: remove {agent!r} from solver.references")
        return self

    @property
    def reference_names(self) -> tuple[ReferenceName, ...]:
        """The arms that need no seeker, in the order of the report."""
        if self.references is not None:
            return self.references
        return ("solo", *PLAIN_REFERENCES) if self.kind == "policy" else PLAIN_REFERENCES


AGENT_REFERENCES: tuple[ReferenceName, ...] = ("solo", "debug", "rewrite")
"""Arms in which the solver works with the tools of a certain agent."""
PLAIN_REFERENCES: tuple[ReferenceName, ...] = ("no_pack", "static", "oracle_pack")


class HarnessConfig(Config):
    """The official SWE-bench harness, run on every arm's predictions."""

    rows: str | None = Field(
        default=None, description="file with the instances' rows; null: the tasks' own source (tasks.options.path)"
    )
    workers: int = Field(default=4, ge=1, description="instances graded at the same time")
    timeout_s: int = Field(default=1800, ge=1, description="time limit for one instance, in seconds")


class EvalConfig(Config):
    """One run of `gumshoe eval`."""

    out: str = Field(description="folder of the evaluation; made if missing, resumed if there")
    title: str = Field(default="How much does the seeker see?", description="headline of the report")
    vars: dict[str, str] = Field(
        default_factory=dict, description="values of {name} in models, answers, earlier, training_log and solver.pack"
    )
    tasks: TasksConfig = Field(description="which tasks; a limit is divided evenly between their splits")
    agent: AgentConfig = Field(default=AgentConfig(kind="seeker"), description="agent of every arm")
    arms: tuple[ArmConfig, ...] = Field(min_length=1, description="what is compared, in the order of the report")
    sandbox: SandboxConfig = Field(default=SandboxConfig(), description="where programs run")
    limits: LimitsConfig = Field(default=LimitsConfig(), description="how much one episode may use")
    serve: ServeConfig = Field(default=ServeConfig(), description="how model folders are served")
    sampling: SamplingConfig = Field(default=SamplingConfig(), description="sampling settings of served models")
    solver: SolverConfig | None = Field(
        default=None, description="measure how much each report helps a solver; null: do not"
    )
    harness: HarnessConfig | None = Field(
        default=None, description="grade with the official SWE-bench harness as well; null: do not"
    )
    repositories: str | None = Field(
        default=None,
        description="folder of bare git repositories (owner/name.git) to read the files of tasks in images from, at "
        "the base commit; null: read them in the image",
    )
    metrics: tuple[str, ...] = Field(
        default=(), description="metrics of your own: names that packages announce, or paths package.module:attribute"
    )
    flaky_runs: int = Field(
        default=0, ge=0, description="runs of the gold patch; tasks that it does not fix every time are excluded"
    )
    max_flaky: float = Field(
        default=0.1, ge=0, le=1, description="maximum share of flaky tasks; with more, the evaluation does not start"
    )
    workers: int = Field(default=2, ge=1, description="episodes run in parallel, in each arm")
    runner: Literal["threads", "ray"] = Field(
        default="threads", description="threads: sandboxes on this machine; ray: on the nodes of a cluster"
    )
    ray: RayConfig = Field(default=RayConfig(), description="the cluster; only with runner: ray")
    seed: int = Field(default=0, ge=0, description="seed of all random choices, including bootstrap samples")
    attempts: int = Field(default=3, ge=1, description="attempts per episode; only infrastructure failures are retried")
    resamples: int = Field(default=2000, ge=100, description="bootstrap samples of one interval")
    training_log: str | None = Field(default=None, description="JSON-lines log of a training run, for the loss curve")

    @field_validator("arms")
    @classmethod
    def _complete_arms(cls, arms: tuple[ArmConfig, ...], info: ValidationInfo) -> tuple[ArmConfig, ...]:
        """The arms with their variables filled in, and with what their agents leave to the evaluation's."""
        return tuple(_complete_arm(arm, info.data.get("agent"), info.data.get("vars", {})) for arm in arms)

    @field_validator("solver")
    @classmethod
    def _fill_solver(cls, solver: SolverConfig | None, info: ValidationInfo) -> SolverConfig | None:
        return None if solver is None else _with_variables(solver, ("model", "pack"), info.data.get("vars", {}))

    @field_validator("training_log")
    @classmethod
    def _fill_training_log(cls, path: str | None, info: ValidationInfo) -> str | None:
        return None if path is None else fill(path, info.data.get("vars", {}))

    @model_validator(mode="after")
    def _arms_agree(self) -> Self:
        names = [arm.name for arm in self.arms]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two arms are called {twice!r}")
        taken = next((name for name in names if self.solver and name in self.solver.reference_names), None)
        if taken is not None:
            raise ValueError(f"an arm cannot be called {taken!r}: that name belongs to one of the solver's own arms")
        if sum(arm.baseline for arm in self.arms) > 1:
            raise ValueError("only one arm can be the baseline")
        return self

    @model_validator(mode="after")
    def _packs_are_there(self) -> Self:
        """An arm without probes stands below the arm whose packs it takes, and needs a solver."""
        above: list[str] = []
        for arm in self.arms:
            if arm.without_probes is None:
                above.append(arm.name)
            elif arm.without_probes not in above:
                known = ", ".join(above) or "none so far"
                raise ValueError(f"arm {arm.name!r}: without_probes names an arm above it with episodes ({known})")
            elif self.solver is None:
                raise ValueError(f"arm {arm.name!r} has packs for a solver, but there is none: add the section solver")
        return self

    @property
    def main_arm(self) -> str:
        """The arm whose patches are written as preds.jsonl, for leaderboards: the last that the config lists."""
        return self.arms[-1].name

    @property
    def baseline_name(self) -> str:
        """The arm that was named the baseline, else the first."""
        return next((arm.name for arm in self.arms if arm.baseline), self.arms[0].name)


def fill(text: str, variables: Mapping[str, str]) -> str:
    """`text` with each {name} replaced by the variable of that name. Raises ValueError if there is none."""
    unknown = next((name for name in re.findall(r"{(\w+)}", text) if name not in variables), None)
    if unknown is not None:
        raise ValueError(f"{{{unknown}}} in {text!r} is not set: give -p vars.{unknown}=...")
    return re.sub(r"{(\w+)}", lambda match: variables[match[1]], text)


def _with_variables(section: ConfigT, names: Iterable[str], variables: Mapping[str, str]) -> ConfigT:
    """A section with the variables in some of its keys filled in; keys without a value are left out."""
    values = {name: value for name in names if (value := getattr(section, name)) is not None}
    return section.model_copy(update={name: fill(value, variables) for name, value in values.items()})


def _complete_arm(arm: ArmConfig, common: AgentConfig | None, variables: Mapping[str, str]) -> ArmConfig:
    arm = _with_variables(arm, ("model", "earlier"), variables)
    if arm.answers is not None:
        arm = arm.model_copy(update={"answers": _with_variables(arm.answers, ("path",), variables)})
    if common and arm.agent and "kind" not in arm.agent.model_fields_set:
        arm = arm.model_copy(update={"agent": common.model_copy(update=arm.agent.model_dump(exclude_unset=True))})
    return arm
