"""The policy for Anthropic's Messages API, against a local server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import AnthropicConfig, CollectConfig, OpenAIConfig, Prices, RetryConfig
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.policies.llm import with_llm
from gumshoe.collect.policies.providers.anthropic import AnthropicPolicy
from gumshoe.errors import ConfigError, ContextOverflow
from gumshoe.records import Completion, Message, ToolCall, ToolSchema
from support.collect.anthropic_answers import call, refusal, said, stream, text, thinking
from support.provider_server import Answer, Provider, hang_up, provider, raw, stall

KEY = "sk-ant-planted-0123456789"
TOOLS = [ToolSchema(name="view", description="Show.", parameters={"type": "object", "properties": {}})]
MESSAGES = [Message(role="system", content="S"), Message(role="user", content="U")]


def settings_of(server: Provider, **settings: Any) -> AnthropicConfig:
    url = server.url.removesuffix("/v1")
    given: dict[str, Any] = {"base_url": url, "model": "m", "retry": RetryConfig(attempts=4), **settings}
    return AnthropicConfig(**given)


def ask(*answers: Answer, **settings: Any) -> tuple[Completion, Provider]:
    with provider(*answers) as server:
        environ = {"ANTHROPIC_API_KEY": KEY}
        policy = AnthropicPolicy(settings_of(server, **settings), seed=3, environ=environ, pause=lambda _: None)
        with closing(policy):
            return policy.complete(MESSAGES, TOOLS), server


def test_calls_usage_and_cost() -> None:
    prices = Prices(prompt=10, cached=1, completion=100)
    answer = said(text("[seek 0.5] look"), call("view", {"path": "a"}), call("view", {"path": "b"}, "toolu_2"))
    completion, server = ask(answer, prices=prices, temperature=0.0, tool_choice="required")
    assert completion.text == "[seek 0.5] look"
    assert completion.tool_calls == (
        ToolCall(id="toolu_1", name="view", arguments={"path": "a"}),
        ToolCall(id="toolu_2", name="view", arguments={"path": "b"}),
    )
    assert (completion.finish_reason, completion.model) == ("tool_calls", "m")
    usage = completion.usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) == (100, 10, 60)
    assert usage.cost_usd == pytest.approx((40 * 10 + 60 * 1 + 10 * 100) / 1e6)
    (sent,) = server.requests
    assert server.paths == ["/v1/messages"]
    assert KEY in f"{server.headers[0].get('x-api-key')} {server.headers[0].get('authorization')}"
    assert sent["tools"] == [{"name": "view", "description": "Show.", "input_schema": TOOLS[0].parameters}]
    assert (sent["temperature"], sent["max_tokens"], sent["tool_choice"]) == (0.0, 8192, {"type": "any"})
    assert sent["system"][0]["text"] == "S"
    assert sent["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


def test_the_history_alternates_and_answers_every_call() -> None:
    history = [
        *MESSAGES,
        Message(
            role="assistant",
            content=" ",
            tool_calls=(ToolCall(id="c 1", name="view", arguments={"path": "a"}), ToolCall(id="2", name="eval")),
        ),
        Message(role="tool", content="[step 0] y", tool_call_id="c 1", name="view"),
        Message(role="tool", content="[step 0] z", tool_call_id="2", name="eval"),
        Message(role="assistant", content="hm"),
        Message(role="user", content="You called no tool."),
    ]
    with provider(said(text("done"))) as server:
        with closing(AnthropicPolicy(settings_of(server), environ={})) as policy:
            assert policy.complete(history, []).finish_reason == "stop"
        (sent,) = server.requests
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert [block["type"] for block in sent["messages"][1]["content"]] == ["tool_use", "tool_use"]
    assert [block["tool_use_id"] for block in sent["messages"][2]["content"]] == ["c_1", "2"]
    assert "tools" not in sent


def test_thinking_is_kept_apart_and_sent_back_while_it_is_known() -> None:
    answers = [said(thinking("hm"), text("x"), call("view", {})), said(text("done"))]
    with provider(*answers) as server:
        made = settings_of(server, thinking={"type": "adaptive"})
        with closing(AnthropicPolicy(made, environ={})) as policy:
            first = policy.complete(MESSAGES, TOOLS)
            assert (first.text, first.reasoning) == ("x", "hm")
            result = Message(role="tool", content="[step 0] y", tool_call_id="toolu_1", name="view")
            history = [*MESSAGES, first.as_message(), result]
            policy.complete(history, TOOLS)
        with closing(AnthropicPolicy(made, environ={})) as resumed:
            resumed.complete(history, TOOLS)
        known, unknown = server.requests[1:]
    assert known["thinking"] == {"type": "adaptive"}
    assert known["messages"][1]["content"][0] == thinking("hm")
    assert "thinking" not in unknown
    assert unknown["messages"][1]["content"][0]["type"] == "text"


@pytest.mark.parametrize(("stop", "reason"), [("max_tokens", "length"), ("refusal", "content_filter")])
def test_why_it_stopped_is_told(stop: str, reason: str) -> None:
    assert ask(said(text("x"), stop=stop))[0].finish_reason == reason


@pytest.mark.parametrize(
    "answer",
    [
        said(text("x"), stop="model_context_window_exceeded"),
        refusal(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        refusal(413, "request_too_large: Request exceeds the maximum size", "request_too_large"),
    ],
)
def test_a_context_overflow_has_an_error_of_its_own(answer: Answer) -> None:
    with pytest.raises(ContextOverflow):
        ask(answer)


@pytest.mark.parametrize(
    "broken",
    [
        refusal(500, "no", "api_error"),
        hang_up(b'{"id": "msg'),
        raw(b'{"id": "msg_1", "type": "mess'),
        raw(b"<html>maintenance</html>", "text/html"),
        raw(b'"just a text"'),
        raw(b'{"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}'),
    ],
    ids=["500", "hang-up", "truncated-json", "wrong-content-type", "not-an-object", "empty"],
)
def test_what_may_pass_is_tried_again(broken: Answer) -> None:
    completion, server = ask(broken, said(text("ok")))
    assert (completion.text, len(server.requests)) == ("ok", 2)


def test_a_server_that_stalls_is_asked_again() -> None:
    # A slow machine may take its sound answer for a stall, too.
    completion, server = ask(stall(60), said(text("ok")), timeout_s=0.5, retry=RetryConfig(attempts=50))
    assert completion.text == "ok"
    assert len(server.requests) >= 2


WHOLE = (thinking("hm"), text("[seek] x"), call("view", {"path": "a.py", "start": 3}))


def test_calls_in_pieces_are_put_together() -> None:
    completion, server = ask(stream(*WHOLE), stream=True)
    assert server.requests[0]["stream"] is True
    assert (completion.text, completion.reasoning) == ("[seek] x", "hm")
    assert completion.tool_calls == (ToolCall(id="toolu_1", name="view", arguments={"path": "a.py", "start": 3}),)
    assert completion.usage.prompt_tokens == 100


OVERLOADED = b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}\n\n'


@pytest.mark.parametrize(
    "broken",
    [
        stream(*WHOLE, until=0),
        stream(*WHOLE, until=9),
        raw(b'event: message_start\ndata: {"type": "mess', "text/event-stream"),
        raw(b'event: message_stop\ndata: {"type": "message_stop"}\n\n', "text/event-stream"),
        raw(OVERLOADED, "text/event-stream"),
        hang_up(b"event: ping\ndata: {}\n\n"),
    ],
    ids=["nothing", "ends-early", "torn-event", "no-beginning", "error-event", "hang-up"],
)
def test_a_broken_stream_is_tried_again(broken: Answer) -> None:
    completion, server = ask(broken, stream(*WHOLE), stream=True)
    assert (len(completion.tool_calls), len(server.requests)) == (1, 2)


def test_anthropic_itself_wants_a_key() -> None:
    with pytest.raises(ConfigError, match="set ANTHROPIC_API_KEY"):
        AnthropicPolicy(AnthropicConfig(model="m"), environ={})


def test_an_entry_of_llm_yaml_may_be_of_this_kind(tmp_path: Path) -> None:
    path = tmp_path / "llm.yaml"
    path.write_text(f"models: {{c: {{kind: anthropic, model: real, api_key: {KEY}, base_url: 'http://x'}}}}")
    environ = {"GUMSHOE_LLM_CONFIG": str(path)}
    found = with_llm(AnthropicConfig(model="c"), environ)
    assert isinstance(found, AnthropicConfig)
    assert (found.model, found.profile, found.base_url) == ("real", "c", "http://x")
    with pytest.raises(ConfigError, match=r"set policy\.kind=anthropic"):
        with_llm(OpenAIConfig(model="c"), environ)
    path.write_text("models: {c: {kind: anthropic, syntax: text}}")
    with pytest.raises(ConfigError, match=r"unknown key 'models\.c\.syntax'"):
        with_llm(AnthropicConfig(model="c"), environ)


def test_a_model_plays_a_whole_episode(config: Callable[..., CollectConfig]) -> None:
    with provider(said(text("[seek 0.5] look"), call("eval", {})), said(call("submit", {}))) as server:
        policy = {"kind": "anthropic", "model": "m", "base_url": server.url.removesuffix("/v1")}
        made = config(1, policy=policy)
        assert collect(made).finished == 1
        assert [turn["role"] for turn in server.requests[1]["messages"]] == ["user", "assistant", "user"]
    (found,) = read_trajectories(Path(made.out))
    assert (found.policy.kind, found.usage.prompt_tokens) == ("anthropic", 200)
    assert found.steps[0].confidence == 0.5
