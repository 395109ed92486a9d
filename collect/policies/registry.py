"""From a policy's config to the policy of one episode."""

from __future__ import annotations

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
from gumshoe.collect.policies.llm import find_key
from gumshoe.collect.policies.scripted import Recordings
from gumshoe.errors import ConfigError, GumshoeError, PolicyError
from gumshoe.plugins import load_path, raised_in
from gumshoe.protocols import Policy
from gumshoe.records import Oracle, Task

__all__ = ["TRUSTED_KINDS", "check_policy", "make_policy"]

TRUSTED_KINDS = frozenset(("human", "investigator", "scripted", "suspect", "teacher", "traceback", "vary"))
"""Kinds of policies that are trusted: the built-in scripts, and people, who act or write a script themselves."""


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
            from gumshoe.collect.policies.scripted import load_script

            load_script(Path(config.script))
        case CustomConfig():
            load_path(config.path, "policy")
        case ReplayConfig():
            _recordings(config.run)
        case _:
            return


def make_policy(config: PolicyConfig, task: Task, oracle: Oracle | None, seed: int) -> Policy:
    """The policy of one episode of `task`. Only the scripted teacher gets the oracle.

    Raises:
        ConfigError: the teacher lacks an oracle, a key is missing, a script cannot be read.
        PolicyError: a replayed run has no episode of the task, or one's own policy raises something.
    """
    match config:
        case TeacherConfig():
            from gumshoe.collect.policies.teacher import TeacherPolicy

            if oracle is None:
                raise ConfigError(f"the scripted teacher needs the oracle of {task.id}: its source provides none")
            whole = config.locations == "functions"
            return TeacherPolicy(task, oracle, seed=seed, explore=config.explore, whole_functions=whole)
        case TracebackConfig():
            from gumshoe.collect.policies.heuristics import TRACEBACK

            return TRACEBACK
        case SuspectConfig():
            from gumshoe.collect.policies.heuristics import SUSPECT

            return SUSPECT
        case VaryConfig():
            from gumshoe.collect.policies.heuristics import VaryPolicy

            return VaryPolicy()
        case InvestigatorConfig():
            from gumshoe.collect.policies.investigator import InvestigatorPolicy

            return InvestigatorPolicy(seed=seed, sure=config.sure, patience=config.patience, turns=config.turns)
        case ScriptedConfig():
            from gumshoe.collect.policies.scripted import ScriptedPolicy, load_script

            return ScriptedPolicy(load_script(Path(config.script)))
        case ReplayConfig():
            return _recordings(config.run).policy(task.id)
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


@lru_cache(maxsize=4)
def _recordings(run: str) -> Recordings:
    return Recordings(Path(run))
