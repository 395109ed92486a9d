"""llm.yaml: a user's models, with their servers, prices and keys, independent of any run.

Found where `GUMSHOE_LLM_CONFIG` says, else in the user's config folder; `gumshoe init` creates it there, or at
`--path`. A run names one of its entries as `policy.model`; what the run's own config says takes precedence. Keys are
looked up when a policy is made and are never in a config that is stored.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SecretStr, field_validator

from gumshoe.collect.config import AnthropicConfig, ModelConfig, OpenAIConfig, PolicyConfig
from gumshoe.config import Config, load_config, validate
from gumshoe.errors import ConfigError

TEMPLATE = """\
# The models you use with gumshoe. A run names one of them:
#   gumshoe collect CONFIG -p policy.kind=openai -p policy.model=gpt
# Anything here can be overridden in the run's own config. Keep this file private: it may hold keys.
models:
  # gpt:
  #   model: gpt-5.2                          # the server's name for it
  #   api_key_env: OPENAI_API_KEY             # environment variable with the key, ...
  #   api_key: sk-...                         # ... or the key itself
  #   max_tokens_name: max_completion_tokens
  #   prices: {prompt: 1.75, cached: 0.175, completion: 14.0}     # dollars per million tokens
  # local:
  #   model: my-model
  #   base_url: http://127.0.0.1:8000/v1      # vLLM, or any other OpenAI-compatible server
  # azure:
  #   model: my-deployment
  #   base_url: https://my-resource.openai.azure.com
  #   azure_api_version: 2024-10-21
  #   api_key_env: AZURE_OPENAI_API_KEY       # or azure_entra: true
  # claude:
  #   kind: anthropic                         # gumshoe-debug[anthropic]; in the run: policy.kind=anthropic
  #   model: claude-sonnet-5
  #   api_key_env: ANTHROPIC_API_KEY
  # router:
  #   model: qwen/qwen3-coder
  #   base_url: https://openrouter.ai/api/v1
  #   api_key_env: OPENROUTER_API_KEY
"""


class KeyedModel(Config):
    """What an entry may hold besides the settings of a policy."""

    api_key: SecretStr | None = Field(default=None, description="the key itself, if it is not in the environment")


class OpenAIEntry(KeyedModel, OpenAIConfig):
    """A model behind an OpenAI-compatible server."""


class AnthropicEntry(KeyedModel, AnthropicConfig):
    """A model behind Anthropic's Messages API."""


LLMEntry = Annotated[OpenAIEntry | AnthropicEntry, Field(discriminator="kind")]
"""One model: the settings of a policy that asks it. Those that are not given are left to the run's config."""


class LLMFile(Config):
    """What llm.yaml holds."""

    models: dict[str, LLMEntry] | None = Field(
        default=None,
        description="entries by the name that runs use, which is also the server's unless `model` is given; "
        "kind is openai unless it is given",
    )

    @field_validator("models", mode="before")
    @classmethod
    def _complete(cls, entries: Any) -> Any:
        if not isinstance(entries, Mapping):
            return entries
        return {
            name: {"kind": "openai", "model": name, **entry} if isinstance(entry, Mapping) else entry
            for name, entry in entries.items()
        }


def llm_path(environ: Mapping[str, str] = os.environ) -> Path:
    """Where llm.yaml is looked for."""
    if environ.get("GUMSHOE_LLM_CONFIG"):
        return Path(environ["GUMSHOE_LLM_CONFIG"])
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "gumshoe" / "llm.yaml"


def load_llm(environ: Mapping[str, str] = os.environ) -> dict[str, LLMEntry]:
    """The entries of llm.yaml; none if there is no such file. Raises ConfigError for an invalid one."""
    path = llm_path(environ)
    if not path.exists():
        if environ.get("GUMSHOE_LLM_CONFIG"):
            raise ConfigError(f"GUMSHOE_LLM_CONFIG names {path}, which does not exist: gumshoe init --path {path}")
        return {}
    return load_config(LLMFile, path).models or {}


def with_llm(policy: PolicyConfig, environ: Mapping[str, str] = os.environ) -> PolicyConfig:
    """The policy with the settings of the entry that its model names; unchanged if none. Raises ConfigError."""
    if not isinstance(policy, ModelConfig) or policy.profile is not None:
        return policy
    entry = load_llm(environ).get(policy.model)
    if entry is None:
        return policy
    if entry.kind != policy.kind:
        raise ConfigError(f"{llm_path(environ)}: {policy.model} is of kind {entry.kind}: set policy.kind={entry.kind}")
    given = {name: getattr(policy, name) for name in policy.model_fields_set if name != "model"}
    given = {name: value for name, value in given.items() if value is not None}
    stated = {name: getattr(entry, name) for name in entry.model_fields_set if name != "api_key"}
    merged = {**stated, **given, "model": entry.model, "profile": policy.model}
    return validate(type(policy), merged, origin=f"{llm_path(environ)}: models.{policy.model}")


def find_key(config: ModelConfig, environ: Mapping[str, str] = os.environ) -> str:
    """The key: from the environment, else from the policy's entry in llm.yaml. A self-hosted server often needs none.

    Raises ConfigError if OpenAI or Anthropic itself is asked, and there is no key.
    """
    key = environ.get(config.api_key_env, "").strip()
    if not key and config.profile is not None:
        entry = load_llm(environ).get(config.profile)
        key = entry.api_key.get_secret_value().strip() if entry is not None and entry.api_key is not None else ""
    if key:
        return key
    if config.base_url is None:
        raise ConfigError(_no_key(config, environ))
    return "none"


def _no_key(config: ModelConfig, environ: Mapping[str, str]) -> str:
    file = llm_path(environ)
    if config.profile is not None:
        return f"policy.model {config.model} needs a key: set {config.api_key_env}, or api_key in {file}"
    entries = ", ".join(sorted(load_llm(environ))) or "none"
    known = f"(entries: {entries})" if file.is_file() else "(gumshoe init writes that file)"
    whose = "Anthropic" if config.kind == "anthropic" else "OpenAI"
    return (
        f"policy.model {config.model!r} is not an entry of {file} {known}, and {whose} is not asked "
        f"without a key: check the name, or set {config.api_key_env}, or api_key in an entry; for another server, set "
        "policy.base_url"
    )


def write_template(path: Path) -> None:
    """Writes a commented llm.yaml that only its owner can read. Raises ConfigError if there already is one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ConfigError(f"{path} already exists: edit it, or choose another --path") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be created: {error}") from None
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(TEMPLATE)
