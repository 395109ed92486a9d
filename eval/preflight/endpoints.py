"""Whether the model servers of an evaluation respond, and accept its keys."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from gumshoe.collect.policies.llm import find_key
from gumshoe.collect.policy_config import AnthropicConfig, OpenAIConfig, PolicyConfig
from gumshoe.errors import ConfigError
from gumshoe.eval.config import CommandConfig

__all__ = ["Endpoint", "check_endpoint", "endpoint_of_command", "endpoints_of_policy"]

TIMEOUT_S = 5.0
REFUSED = (401, 403)


@dataclass(frozen=True)
class Endpoint:
    """A server: an address that is cheap to request, and the headers that say who is asking."""

    owner: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def endpoints_of_policy(owner: str, policy: PolicyConfig) -> Iterator[Endpoint]:
    """The servers that a policy names itself; none if it asks OpenAI or Anthropic. Raises ConfigError without a key."""
    if not isinstance(policy, OpenAIConfig | AnthropicConfig):
        return
    for base in policy.endpoints or (policy.base_url,):
        if base is None:
            continue
        if isinstance(policy, AnthropicConfig):
            yield Endpoint(owner, f"{base.rstrip('/')}/v1/models", {"x-api-key": find_key(policy)})
        elif policy.azure_api_version or policy.azure_entra:
            # Without a key: deployments differ in how they are asked, but a running server answers any request.
            yield Endpoint(owner, base)
        else:
            yield Endpoint(owner, f"{base.rstrip('/')}/models", {"Authorization": f"Bearer {find_key(policy)}"})


def endpoint_of_command(owner: str, command: CommandConfig) -> Iterator[Endpoint]:
    """The server that a program may reach, if there is one."""
    if command.endpoint is not None:
        key = os.environ.get(command.api_key_env, "none")
        yield Endpoint(owner, f"{command.endpoint.rstrip('/')}/models", {"Authorization": f"Bearer {key}"})


def check_endpoint(endpoint: Endpoint) -> None:
    """Raises ConfigError if nothing answers, or the key is refused. Any other answer will do: not all list models."""
    import httpx2

    shown = _without_password(endpoint.url)
    try:
        status = httpx2.get(endpoint.url, headers=dict(endpoint.headers), timeout=TIMEOUT_S).status_code
    except httpx2.TimeoutException:
        raise ConfigError(f"{endpoint.owner}: {shown} did not answer in {TIMEOUT_S:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(f"{endpoint.owner}: {shown} does not answer: {' '.join(str(error).split())}") from None
    if endpoint.headers and status in REFUSED:
        raise ConfigError(f"{endpoint.owner}: {shown} rejects the key (HTTP {status})")


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
