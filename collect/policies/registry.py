"""From a policy's config to the policy of one episode; and the policies that follow a list of completions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import assert_never

from gumshoe.collect.config import (
    AnthropicConfig,
    CustomConfig,
    HumanConfig,
    InvestigatorConfig,
    OpenAIConfig,
    PolicyConfig,
    ReplayConfig,
    ScriptedConfig,
    SuspectConfig,
    TeacherConfig,
    TracebackConfig,
    VaryConfig,
)
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.episode.conversation import count_turns
from gumshoe.collect.policies.llm import find_key
from gumshoe.collect.policies.strategy import Strategy, StrategyPolicy
from gumshoe.errors import ConfigError, GumshoeError, PolicyError, ScriptExhausted
from gumshoe.plugins import load_path, raised_in
from gumshoe.protocols import Policy
from gumshoe.records import Completion, Message, Oracle, Task, ToolSchema
from gumshoe.storage import read_records


def check_policy(config: PolicyConfig) -> None:
    """Refuses a config that no episode could be played with.

    Raises:
        ConfigError: there is no key, or a script or one's own policy cannot be read.
        DatasetError: the run that is replayed cannot be read.
    """
    match config:
        case OpenAIConfig() | AnthropicConfig():
            find_key(config)
        case ScriptedConfig():
            load_script(Path(config.script))
        case CustomConfig():
            load_path(config.path, "policy")
        case ReplayConfig():
            load_recordings(config.run)
        case _:
            return


def make_policy(config: PolicyConfig, task: Task, oracle: Oracle | None, seed: int) -> Policy:
    """The policy of one episode of `task`. Only the scripted teacher gets the oracle.

    Raises:
        ConfigError: the teacher lacks an oracle, a key is missing, a script cannot be read, one's own policy cannot be
            imported, does not take its options, or is none.
        DatasetError: the run that is replayed cannot be read.
        PolicyError: a replayed run has no episode of the task, or one's own policy raises something other than a
            GumshoeError, which is passed on.
    """
    match config:
        case TeacherConfig():
            return StrategyPolicy(_teacher(config, task, oracle), seed=seed)
        case TracebackConfig() | SuspectConfig() | VaryConfig() | InvestigatorConfig():
            return StrategyPolicy(_strategy(config), seed=seed, needs_test=task.regime == "issue")
        case ScriptedConfig():
            return ScriptedPolicy(load_script(Path(config.script)))
        case ReplayConfig():
            script = load_recordings(config.run).get(task.id)
            if script is None:
                raise PolicyError(f"{config.run} has no trajectory of task {task.id} to replay")
            return ScriptedPolicy(script, kind="replay", trusted=False)
        case CustomConfig():
            return _custom(config, task, seed)
        case HumanConfig():
            from gumshoe.collect.policies.human import HumanPolicy

            return HumanPolicy()
        case OpenAIConfig():
            from gumshoe.collect.policies.providers.openai import OpenAIPolicy

            return OpenAIPolicy(config, seed=seed)
        case AnthropicConfig():
            from gumshoe.collect.policies.providers.anthropic import AnthropicPolicy

            return AnthropicPolicy(config, seed=seed)
        case _:
            assert_never(config)


def _teacher(config: TeacherConfig, task: Task, oracle: Oracle | None) -> Strategy:
    from gumshoe.collect.policies.teacher import Teacher

    if oracle is None:
        raise ConfigError(f"the scripted teacher needs the oracle of {task.id}: its source provides none")
    return Teacher(task, oracle, explore=config.explore, whole_functions=config.locations == "functions")


def _strategy(config: TracebackConfig | SuspectConfig | VaryConfig | InvestigatorConfig) -> Strategy:
    """How a program that does not know the answer chooses its turns."""
    if isinstance(config, InvestigatorConfig):
        from gumshoe.collect.policies.investigator.policy import Investigator

        return Investigator(sure=config.sure, patience=config.patience, turns=config.turns)
    from gumshoe.collect.policies.heuristics import SUSPECT, TRACEBACK, VarySuspects

    return {"traceback": TRACEBACK, "suspect": SUSPECT, "vary": VarySuspects()}[config.kind]


def _custom(config: CustomConfig, task: Task, seed: int) -> Policy:
    make = load_path(config.path, "policy")
    try:
        made = make(task=task, seed=seed, **config.options)
    except TypeError as error:
        raise ConfigError(f"policy {config.path!r}: {error}") from None
    except GumshoeError:
        raise
    except Exception as error:
        raise PolicyError(f"policy {config.path!r} cannot be made: {raised_in(make, error)}") from None
    missing = [name for name in ("kind", "model", "trusted", "complete") if not hasattr(made, name)]
    if missing:
        raise ConfigError(
            f"{config.path!r} is not a policy: it lacks {', '.join(missing)} (see gumshoe.protocols.Policy)"
        )
    return made


class ScriptedPolicy:
    """Gives the completion of the turn that the conversation is at, so that a replayed episode finds its place.

    Args:
        script: one completion per turn.
        kind: what the trajectory calls the policy.
        trusted: whether it is: a script that a person wrote is, a recording is not, as a model may have made it.
    """

    model = ""

    def __init__(self, script: Sequence[Completion], *, kind: str = "scripted", trusted: bool = True) -> None:
        self.kind = kind
        self.trusted = trusted
        self._script = tuple(script)

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        """The next completion. Raises ScriptExhausted after the last."""
        del tools
        turn = count_turns(messages)
        if turn >= len(self._script):
            raise ScriptExhausted(f"the script has no completion for turn {turn + 1}: it has only {len(self._script)}")
        return self._script[turn]


def load_script(path: Path) -> tuple[Completion, ...]:
    """The completions in a JSON-lines file. Raises ConfigError."""
    return tuple(read_records(path, Completion, error=ConfigError))


@lru_cache(maxsize=4)
def load_recordings(run: str) -> dict[str, tuple[Completion, ...]]:
    """What was done on each task of a run folder, in its first trajectory. Raises DatasetError."""
    scripts: dict[str, tuple[Completion, ...]] = {}
    for trajectory in read_trajectories(Path(run)):
        scripts.setdefault(trajectory.task.id, tuple(step.completion for step in trajectory.steps))
    return scripts
