"""Azure's form of the OpenAI API: deployments, keys and Entra ID."""

from __future__ import annotations

import json
import time
from contextlib import closing

import pytest

from gumshoe.collect.config import OpenAIConfig
from gumshoe.collect.policies.providers.openai import OpenAIPolicy
from gumshoe.errors import ConfigError, PolicyError
from gumshoe.records import Message
from support.provider_server import Provider, chat, provider, raw

KEY = "sk-planted-0123456789"
MESSAGES = [Message(role="user", content="U")]


def test_azure_is_asked_by_deployment_with_its_own_header() -> None:
    with provider(chat("ok")) as server:
        config = OpenAIConfig(base_url=server.url.removesuffix("/v1"), model="mine", azure_api_version="2024-10-21")
        with closing(OpenAIPolicy(config, environ={"OPENAI_API_KEY": KEY})) as policy:
            assert policy.complete(MESSAGES, []).text == "ok"
        assert server.headers[0]["api-key"] == KEY
        assert server.paths == ["/openai/deployments/mine/chat/completions?api-version=2024-10-21"]


def test_what_azure_lacks_is_told() -> None:
    with pytest.raises(ConfigError, match=r"needs policy\.base_url"):
        OpenAIPolicy(OpenAIConfig(model="m", azure_api_version="1"), environ={"OPENAI_API_KEY": KEY})


def signs_in_at(identity: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a machine whose managed identity is given out at a local address."""
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
    monkeypatch.setenv("IDENTITY_ENDPOINT", identity.url)
    monkeypatch.setenv("IDENTITY_HEADER", "of-this-machine")


def test_azure_with_entra_id_asks_for_a_token_and_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    expires = str(int(time.time()) + 86_000)
    token = {"access_token": "entra-token", "expires_on": expires, "resource": "r", "token_type": "Bearer"}
    with provider(raw(json.dumps(token).encode())) as identity, provider(chat("ok")) as server:
        signs_in_at(identity, monkeypatch)
        address = server.url.removesuffix("/v1")
        config = OpenAIConfig(base_url=address, model="mine", azure_api_version="2024-10-21", azure_entra=True)
        with closing(OpenAIPolicy(config, environ={"OPENAI_API_KEY": KEY})) as policy:
            assert [policy.complete(MESSAGES, []).text for _ in range(2)] == ["ok", "ok"]
        assert [sent.get("authorization") for sent in server.headers] == ["Bearer entra-token"] * 2
        assert all("api-key" not in sent for sent in server.headers)
        assert len(identity.paths) == 1
        assert "cognitiveservices.azure.com" in identity.paths[0]
        assert identity.headers[0]["x-identity-header"] == "of-this-machine"


def test_entra_id_that_refuses_is_a_failure_of_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    with provider(raw(b'{"message": "no such identity"}', status=400)) as identity, provider(chat("ok")) as server:
        signs_in_at(identity, monkeypatch)
        config = OpenAIConfig(base_url=server.url, model="mine", azure_api_version="2024-10-21", azure_entra=True)
        policy = OpenAIPolicy(config, environ={})
        with closing(policy), pytest.raises(PolicyError, match="Entra ID returned no token"):
            policy.complete(MESSAGES, [])
        assert server.requests == []
