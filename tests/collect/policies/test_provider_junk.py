"""Whatever a model provider answers, the policy gives a completion that can be stored, or a PolicyError."""

from __future__ import annotations

import copy
import gc
import json
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gumshoe.collect.config import RetryConfig
from gumshoe.errors import PolicyError
from gumshoe.protocols import Policy
from gumshoe.records import Completion
from support.collect.providers import KEY, TOOLS, ask, call, events, message, policy_of, text, thinking
from support.collect.small_trajectories import OPENING
from support.provider_server import Handler, completion, provider, raw

ONCE = RetryConfig(attempts=1)

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -1, 10**400, 0.5, -0.5, 1e308, float("nan"), float("inf")]),
    st.text(st.characters(), max_size=20),
    st.sampled_from(["", "\ud800", "banana", "length", "\x00", "<tool_call>", "<tool_call>{}</tool_call>", "</think>"]),
    st.just([]),
    st.just({}),
    st.recursive(st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
    st.integers(1, 5000).map(lambda depth: Raw("[" * depth + "]" * depth)),
    st.integers(1, 5000).map(lambda depth: Raw('{"a":' * depth + "1" + "}" * depth)),
)


class Raw(str):
    """JSON text that stands for a value too deep to be made."""


WHOLE = completion("[seek] x", [("view", {"path": "a"}), ("view", "{}")], None, "m")
CHUNKS = [
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": usage}
    for delta, finish, usage in (
        ({"role": "assistant", "content": "[seek] x"}, None, None),
        ({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "view", "arguments": '{"a"'}}]}, None, None),
        ({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}, None, None),
        ({}, "tool_calls", {"prompt_tokens": 7, "completion_tokens": 3}),
    )
]
BLOCKS = (thinking("hm"), text("[seek] x"), call("view", {"path": "a"}))
MESSAGE = message({"model": "m"}, list(BLOCKS), "tool_use")
EVENTS = events({"model": "m"}, BLOCKS)


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*here, key))
    return found


@st.composite
def damaged(draw: st.DrawFn, value: Any) -> str:
    """JSON text of `value` with one to three places replaced by junk, removed, or doubled."""
    changed = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.sampled_from(places(changed)))
        if not place:
            if draw(st.integers(0, 20)) == 0:
                changed = draw(JUNK)
            continue
        holder = changed
        for key in place[:-1]:
            holder = holder[key]
        action = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
        if action == "replace":
            holder[place[-1]] = draw(JUNK)
        elif action == "remove":
            del holder[place[-1]]
        elif isinstance(holder, list):
            holder.append(draw(JUNK))
        else:
            holder[draw(st.text(max_size=5))] = draw(JUNK)
    return dumped(changed)


def dumped(value: Any) -> str:
    """JSON in which a `Raw` stands as the value that it spells."""
    raws: list[str] = []

    def marked(item: Any) -> Any:
        if isinstance(item, Raw):
            raws.append(item)
            return f"@raw{len(raws) - 1}@"
        if isinstance(item, dict):
            return {key: marked(inner) for key, inner in item.items()}
        return [marked(inner) for inner in item] if isinstance(item, list) else item

    found = json.dumps(marked(value))
    for number, spelled in enumerate(raws):
        found = found.replace(f'"@raw{number}@"', spelled)
    return found


class PolicyUnderTest:
    """A policy in front of a server that answers with `body`."""

    def __init__(self, kind: str, stream: bool) -> None:
        self.body = b""
        self.type = "text/event-stream" if stream else "application/json"
        self._running = provider(self._answer)
        server = self._running.__enter__()
        self.policy = policy_of(kind, server, retry=ONCE, timeout_s=2.0, stream=stream)

    def _answer(self, handler: Handler, body: dict[str, Any]) -> None:
        del body
        handler.reply(200, self.body, self.type)

    def close(self) -> None:
        self.policy.close()
        self._running.__exit__(None, None, None)


def outcome(policy: Policy) -> Completion | str:
    """The completion, after a look at whether it can be stored; or what the policy said when it refused the answer."""
    try:
        found = policy.complete(OPENING, TOOLS)
    except PolicyError as error:
        return str(error)
    assert Completion.model_validate_json(found.model_dump_json()) == found
    json.dumps(found.as_message().as_openai()).encode()
    return found


@pytest.fixture(scope="module", params=["openai", "openai-stream", "anthropic", "anthropic-stream"])
def asked(request: pytest.FixtureRequest) -> Generator[tuple[str, PolicyUnderTest]]:
    kind, _, stream = request.param.partition("-")
    one = PolicyUnderTest(kind, bool(stream))
    yield request.param, one
    one.close()


@pytest.fixture
def no_collections() -> Generator[None]:
    """No garbage collection where the recursion is deepest: what Python calls then fails, and pytest reports it."""
    gc.disable()
    yield
    gc.enable()


SOUND: dict[str, Any] = {"openai": WHOLE, "anthropic": MESSAGE, "openai-stream": CHUNKS, "anthropic-stream": EVENTS}


def event(piece: dict[str, Any], text: str) -> str:
    return f"event: {piece.get('type', 'message')}\ndata: {text}\n\n"


@st.composite
def bodies(draw: st.DrawFn, kind: str) -> bytes:
    """An answer with damage; one in pieces may lack some of them, too."""
    if not kind.endswith("stream"):
        return draw(damaged(SOUND[kind]) | JUNK.map(dumped)).encode()
    texts: list[str] = []
    for piece in SOUND[kind]:
        fate = draw(st.sampled_from(["sound", "sound", "damaged", "gone"]))
        if fate != "gone":
            texts.append(event(piece, json.dumps(piece) if fate == "sound" else draw(damaged(piece))))
    return "".join(texts).encode("utf-8", "surrogatepass")


@pytest.mark.usefixtures("no_collections")
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")  # in the SDK
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_junk_is_a_completion_or_a_policy_error(asked: tuple[str, PolicyUnderTest], data: st.DataObject) -> None:
    kind, one = asked
    one.body = data.draw(bodies(kind))
    found = outcome(one.policy)
    assert not isinstance(found, str) or ("\n" not in found and KEY not in found)


def test_sound_answers_pass(asked: tuple[str, PolicyUnderTest]) -> None:
    kind, one = asked
    sound = SOUND[kind]
    body = "".join(event(piece, json.dumps(piece)) for piece in sound) if kind.endswith("stream") else json.dumps(sound)
    one.body = body.encode()
    found = outcome(one.policy)
    assert isinstance(found, Completion)
    assert found.tool_calls[0].name == "view"


def test_a_call_that_the_server_lost_is_no_answer() -> None:
    body = {"choices": [{"message": {"tool_calls": [{"function": None}]}}]}
    with pytest.raises(PolicyError, match="call without a name"):
        ask("openai", raw(json.dumps(body).encode()), retry=ONCE)


def test_a_key_that_is_echoed_in_a_stream_is_never_shown() -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY} here"}})
    with pytest.raises(PolicyError, match=r"bad key \[key\] here"):
        ask("openai", raw(f"data: {body}\n\n".encode(), "text/event-stream"), retry=ONCE, stream=True)


def test_a_key_in_an_answer_is_not_stored() -> None:
    answer = raw(json.dumps(completion(f"your key is {KEY}", [("view", {"path": KEY})], None, KEY)).encode())
    found, _ = ask("openai", answer)
    assert KEY not in found.model_dump_json()
    assert found.tool_calls[0].arguments == {"path": "[key]"}
