"""Checks a server over HTTP: native calls, streaming, and whether conversations are rendered as they were trained."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import openai
from openai.types.chat import ChatCompletion

from gumshoe.collect.episode.conversation import as_native_chat, as_template_chat
from gumshoe.errors import DatasetError, ServeError
from gumshoe.eval.masks import Masks
from gumshoe.records import Message, ToolCall, ToolSchema
from gumshoe.tools.calls.parsing import TAG, parse_native
from gumshoe.tools.code.source import count_common

Status = Literal["ok", "not supported", "wrong", "not judged"]
"""`not supported`: the server refuses or ignores it, as its answer shows. `wrong`: it answers, but not with what was
asked for. `not judged`: the model gave no occasion, or what it takes to judge is not installed.
"""
REFUSALS = frozenset({400, 404, 405, 415, 422, 501})
MAX_TOKENS = 128
TIMEOUT_S = 300.0
SYNTAXES: dict[str, Callable[[Sequence[Message]], list[dict[str, Any]]]] = {
    "template": as_template_chat,
    "native": as_native_chat,
}
"""How the history is sent, by the names that a policy's `syntax` has."""


ASK = "Show the file cart.py with the tool view."

TOOLS = (
    ToolSchema(
        name="view",
        description="Shows a file.",
        parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    ),
    ToolSchema(
        name="report",
        description="Hands over what was found.",
        parameters={"type": "object", "properties": {"hypothesis": {"type": "string"}}, "required": ["hypothesis"]},
    ),
)

_DEEP = ToolCall(id="1", name="view", arguments={"path": "é b.py", "start": 3, "deep": {"b": [1, "2"], "a": None}})
_AGAIN = ToolCall(id="2", name="view", arguments={"path": "cart.py"})
_HEAD = (Message(role="system", content="You look for bugs."), Message(role="user", content="test_total fails."))


def _result(step: int, call: ToolCall, text: str) -> Message:
    return Message(role="tool", content=f"[step {step}] {text}", tool_call_id=call.id, name=call.name)


CONVERSATIONS: dict[str, tuple[Message, ...]] = {
    # Turns with text, one call, two calls, and no text.
    "conversation": (
        *_HEAD,
        Message(role="assistant", content="[seek 0.9] I look\nat it.", tool_calls=(_DEEP,)),
        _result(0, _DEEP, "1 total = 'ü'\n  2 return <total> & \"more\""),
        Message(role="assistant", content="[seek 0.5] Both.", tool_calls=(_DEEP, _AGAIN)),
        _result(1, _DEEP, "1 a"),
        _result(1, _AGAIN, "1 b"),
        Message(role="assistant", content="", tool_calls=(_AGAIN,)),
        _result(2, _AGAIN, "error: no such file"),
        Message(role="assistant", content="[report 0.9] It is line 2."),
    ),
    # Reasoning in turns before and after a user's message: templates treat the two differently.
    "reasoning": (
        *_HEAD,
        Message(role="assistant", content="[seek 0.9] I look.", tool_calls=(_DEEP,), reasoning="It may be\nthe total."),
        _result(0, _DEEP, "1 a"),
        Message(role="assistant", content="[report 0.9] Done.", reasoning="So it is."),
        Message(role="user", content="Sure?"),
        Message(role="assistant", content="[report 0.9] Yes."),
    ),
}


@dataclass(frozen=True)
class CheckItem:
    """One item, its status, and what was seen."""

    item: str
    status: Status
    seen: str


def check_server(base_url: str, model: str, folder: Path, *, ask: str = ASK) -> Iterator[CheckItem]:
    """Asks a running server and yields one verdict per item.

    What depends on the model's ability (to call a tool at all) is `not judged` if the model lacks it: `ask` is what
    makes it call one. The training path renders with the model `folder`. Raises ServeError if nobody answers.
    """
    asked = [{"role": "user", "content": ask}]
    with openai.OpenAI(base_url=base_url, api_key="none", timeout=TIMEOUT_S, max_retries=0) as client:
        server = CheckedModel(client, model)
        yield _judged("native calls", lambda: judge_native_call(server, asked))
        yield _judged("streaming", lambda: judge_streaming(server, asked))
        yield from _renderings(server, folder)


class CheckedModel:
    """One model on one server, asked at temperature 0 with the same tools each time."""

    def __init__(self, client: openai.OpenAI, model: str) -> None:
        self._create: Callable[..., Any] = client.chat.completions.create
        self._fields = {"model": model, "temperature": 0, "tools": [tool.as_openai() for tool in TOOLS]}
        self._names_tokens = True

    def chat(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> ChatCompletion:
        """One answer. Raises openai.APIError, and ValueError if it has another form."""
        answer = self._create(messages=messages, **self._fields, **fields)
        if not isinstance(answer, ChatCompletion) or not answer.choices:
            raise ValueError("the answer is no chat completion")
        return answer

    def stream(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Iterator[Any]:
        """The pieces of a streamed answer. Raises as `chat`."""
        return self._create(messages=messages, stream=True, **self._fields, **fields)

    def prompt(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, list[int] | None]:
        """How many tokens the server gives the model to read, and which, if it says. Raises as `chat`."""
        if self._names_tokens:
            try:
                return _prompt_of(self.chat(messages, max_tokens=1, extra_body={"return_token_ids": True}))
            except openai.APIStatusError as error:
                if error.status_code not in REFUSALS:
                    raise
                self._names_tokens = False
        return _prompt_of(self.chat(messages, max_tokens=1))


def _prompt_of(answer: ChatCompletion) -> tuple[int, list[int] | None]:
    if answer.usage is None:
        raise ValueError("the answer has no token counts")
    ids = (answer.model_extra or {}).get("prompt_token_ids")
    return answer.usage.prompt_tokens, ids if isinstance(ids, list) else None


Verdict = tuple[Status, str]


def _judged(item: str, judge: Callable[[], Verdict]) -> CheckItem:
    """The verdict on one item; what the server refuses or garbles is one, too. Raises ServeError if nobody answers."""
    try:
        status, seen = judge()
    except openai.APIStatusError as error:
        status = "not supported" if error.status_code in REFUSALS else "wrong"
        seen = f"HTTP {error.status_code}: {error.response.text}"
    except openai.APIConnectionError as error:
        raise ServeError(f"no server responds at {error.request.url}: {error.__cause__ or error}") from None
    except (openai.APIError, ValueError) as error:
        status, seen = "wrong", str(error)
    return CheckItem(item, status, " ".join(seen.split())[:300])


def judge_native_call(server: CheckedModel, asked: Sequence[Mapping[str, Any]]) -> Verdict:
    """A call that the model writes comes back in `tool_calls`, readable, and `finish_reason` says so."""
    choice = server.chat(asked, tool_choice="auto", max_tokens=MAX_TOKENS).choices[0]
    text, calls = choice.message.content or "", _calls_of(choice.message)
    if not calls and TAG in text:
        return "not supported", "calls stay in the text: ask it with syntax: template"
    if not calls:
        return "not judged", f"the model called no tool: {text[:60]!r}"
    for name, arguments in calls:
        if name not in {tool.name for tool in TOOLS}:
            return "wrong", f"a call of {name!r}, which was not offered"
        if parse_native("", name, arguments).parse_error is not None:
            return "wrong", f"arguments that are no JSON object: {arguments[:60]!r}"
    if choice.finish_reason != "tool_calls":
        return "wrong", f"finish_reason is {choice.finish_reason!r}"
    return "ok", ", ".join(f"{name} {arguments}" for name, arguments in calls)


def judge_streaming(server: CheckedModel, asked: Sequence[Mapping[str, Any]]) -> Verdict:
    """The pieces of a stream, put together, equal the answer that comes in one piece."""
    whole = server.chat(asked, max_tokens=MAX_TOKENS).choices[0]
    text, finish, pieces = "", None, 0
    calls: dict[int, tuple[str, str]] = {}
    for pieces, chunk in enumerate(server.stream(asked, max_tokens=MAX_TOKENS), start=1):  # noqa: B007 - counted
        for choice in chunk.choices[:1]:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or ():
                name, arguments = calls.get(part.index, ("", ""))
                calls[part.index] = (name + (part.function.name or ""), arguments + (part.function.arguments or ""))
    problems = {
        "the text differs from the answer in one piece": text.strip() != (whole.message.content or "").strip(),
        "the calls differ from those in one piece": [calls[i] for i in sorted(calls)] != _calls_of(whole.message),
        f"finish_reason is {finish!r}, in one piece {whole.finish_reason!r}": finish != whole.finish_reason,
    }
    wrong = "; ".join(problem for problem, is_so in problems.items() if is_so)
    return ("wrong", wrong) if wrong else ("ok", f"{pieces} pieces")


def _calls_of(message: Any) -> list[tuple[str, str]]:
    return [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]


def _renderings(server: CheckedModel, folder: Path) -> Iterator[CheckItem]:
    tools = [tool.as_openai() for tool in TOOLS]
    items = [(f"{name} as trained, syntax {syntax}", syntax, name) for syntax in SYNTAXES for name in CONVERSATIONS]
    try:
        with closing(Masks(folder)) as masks:
            trained = {
                name: masks.compute(
                    {"messages": [one.as_openai(arguments_as_text=False) for one in messages], "tools": tools}
                )
                for name, messages in CONVERSATIONS.items()
            }
    except DatasetError as error:
        yield from (CheckItem(item, "not judged", str(error)) for item, _, _ in items)
        return
    for item, syntax, name in items:
        yield _judged(item, partial(judge_rendering, server, syntax, CONVERSATIONS[name], trained[name]))


def judge_rendering(
    server: CheckedModel, syntax: str, messages: Sequence[Message], trained: Mapping[str, Sequence[int]]
) -> Verdict:
    """At each point where the model is asked, the server's prompt equals what precedes it in the training row.

    A server that renders a native history differently does not support that syntax; calls sent as their original text
    must be rendered correctly by any server. `trained` holds the `input_ids` of the row, and in
    `starts` where each assistant turn begins.
    """
    turns = [index for index, message in enumerate(messages) if message.role == "assistant"]
    starts, row = trained["starts"], trained["input_ids"]
    if len(starts) != len(turns):
        return "wrong", f"{len(turns)} turns, of which {len(starts)} train"
    exact = True
    for turn, index in enumerate(turns):
        count, ids = server.prompt(SYNTAXES[syntax](messages[:index]))
        expected = row[: starts[turn]]
        if count != len(expected) or (ids is not None and ids != expected):
            alike = "" if ids is None else f", alike up to token {count_common(ids, expected)}"
            status: Status = "wrong" if syntax == "template" else "not supported"
            return status, f"turn {turn}: served {count} tokens, trained {len(expected)}{alike}"
        exact = exact and ids is not None
    how = "token by token" if exact else "by their number, as the server does not name its tokens"
    return "ok", f"{len(turns)} prompts compared {how}"
