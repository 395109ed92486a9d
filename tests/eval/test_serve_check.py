"""`gumshoe serve --check`: a real server that does some of it, and small real ones that get things wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from gumshoe.cli import main
from gumshoe.errors import ServeError
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.check import CONVERSATIONS, CheckedModel, CheckItem, check_server, judge_rendering
from support.provider_server import Answer, Handler, provider


def test_transformers_serve_does_what_it_is_known_to_do(
    served: ModelServer, micro_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["serve", str(micro_model), "--check", "--ask", "good", "--url", served.base_url]
    assert main([*argv, "--served-name", served.model]) == 0
    *lines, _ = capsys.readouterr().out.splitlines()
    found = {item: (status, seen) for status, item, seen in (re.split(r"\s{2,}", line, maxsplit=2) for line in lines)}
    assert found["native calls"][0] == "not supported"
    assert found["streaming"][0] == "ok"
    for name in ("conversation", "reasoning"):
        status, seen = found[f"{name} as trained, syntax template"]
        assert status == "ok"
        assert "by their number" in seen
        assert found[f"{name} as trained, syntax native"][0] == "not supported"
    assert main(["serve", str(micro_model), "--url", served.base_url]) == 2
    assert "--url needs --check" in capsys.readouterr().err


Reply = tuple[int, Any]


def answer_with(reply: Reply | Callable[[Any], Reply]) -> Answer:
    def give(handler: Handler, request: dict[str, Any]) -> None:
        status, body = reply(request) if callable(reply) else reply
        text, kind = (body, "text/plain") if isinstance(body, str) else (json.dumps(body), "application/json")
        handler.reply(status, text.encode(), kind)

    return give


@pytest.fixture
def replies() -> Iterator[Callable[..., str]]:
    """A server that gives each request the next of some replies: a status, and an object or a stream's text."""
    with ExitStack() as stack:
        yield lambda *script: stack.enter_context(provider(*map(answer_with, script))).url


def item_of(url: str, item: str) -> CheckItem:
    """One item of the check of a server; no model folder is there."""
    return next(one for one in check_server(url, "m", Path("/nowhere")) if one.item == item)


def answer(text: str = "", *calls: tuple[str, str], finish: str | None = None, **usage: int) -> Reply:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    native = [{"id": "1", "type": "function", "function": {"name": name, "arguments": said}} for name, said in calls]
    if native:
        message |= {"tool_calls": native}
    choice = {"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if native else "stop")}
    return 200, {"choices": [choice], "usage": usage}


VIEW = ("view", '{"path": "a"}')


@pytest.mark.parametrize(
    ("reply", "status", "seen"),
    [
        (answer("", VIEW), "ok", 'view {"path": "a"}'),
        (answer("", VIEW, finish="stop"), "wrong", "finish_reason is 'stop'"),
        (answer("", ("veiw", "{}")), "wrong", "a call of 'veiw', which was not offered"),
        (answer("", ("view", "{")), "wrong", "arguments that are no JSON object: '{'"),
        (answer("<tool_call>{}"), "not supported", "calls stay in the text"),
        (answer("Hello"), "not judged", "the model called no tool: 'Hello'"),
        ((400, {"error": "no tools here"}), "not supported", "no tools here"),
        ((500, "boom"), "wrong", "HTTP 500: boom"),
        ((200, "no json"), "wrong", "the answer is no chat completion"),
    ],
)
def test_native_calls_are_judged(replies: Callable[..., str], reply: Reply, status: str, seen: str) -> None:
    verdict = item_of(replies(reply), "native calls")
    assert verdict.status == status
    assert seen in verdict.seen


def stream(*deltas: dict[str, Any], finish: str = "stop") -> Reply:
    pieces = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    pieces += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": {}}]
    return 200, "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"


def part(index: int, **function: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": function}]}


@pytest.mark.parametrize(
    ("whole", "pieces", "status", "seen"),
    [
        (answer("ab"), stream({"content": "a"}, {"content": "b"}), "ok", "4 pieces"),
        (answer("ab"), stream({"content": "a"}), "wrong", "the text differs"),
        (answer("a"), stream({"content": "a"}, finish="length"), "wrong", "finish_reason is 'length'"),
        (
            answer("", VIEW, VIEW),
            stream(
                part(0, name="view"), part(0, arguments='{"path": "a"}'), part(1, name=VIEW[0], arguments=VIEW[1]),
                finish="tool_calls",
            ),
            "ok",
            "5 pieces",
        ),
        (answer("", VIEW), stream(part(0, name="view"), finish="tool_calls"), "wrong", "the calls differ"),
        (answer("a"), (400, "no"), "not supported", "HTTP 400"),
        (answer("a"), (500, "no"), "wrong", "HTTP 500"),
    ],
)  # fmt: skip
def test_streams_are_judged(replies: Callable[..., str], whole: Reply, pieces: Reply, status: str, seen: str) -> None:
    verdict = item_of(replies(answer("a call"), whole, pieces), "streaming")
    assert verdict.status == status
    assert seen in verdict.seen


def tokens(*ids: int) -> Reply:
    status, body = answer("a", prompt_tokens=len(ids))
    return status, {**body, "prompt_token_ids": list(ids)}


def test_prompts_are_compared_token_by_token(replies: Callable[..., str]) -> None:
    def compared(
        *script: Reply | Callable[[Any], Reply], syntax: str = "template", starts: tuple[int, ...] = (3, 3, 3)
    ) -> tuple[str, str]:
        turns, trained = CONVERSATIONS["reasoning"], {"input_ids": [1, 2, 3, 4], "starts": starts}
        with openai.OpenAI(base_url=replies(*script), api_key="none", max_retries=0) as client:
            return judge_rendering(CheckedModel(client, "m"), syntax, turns, trained)

    assert compared(tokens(1, 2, 3)) == ("ok", "3 prompts compared token by token")
    wrong = "turn 0: served 3 tokens, trained 3, alike up to token 1"
    assert compared(tokens(1, 9, 3)) == ("wrong", wrong)
    assert compared(tokens(1, 2), syntax="native")[0] == "not supported"
    assert compared(tokens(1, 2), starts=(1,)) == ("wrong", "3 turns, of which 1 train")
    asked: list[bool] = []

    def without_ids(request: dict[str, Any]) -> Reply:
        asked.append("return_token_ids" in request)
        return (422, "unknown field") if asked[-1] else answer("a", prompt_tokens=3)

    assert compared(without_ids)[0] == "ok"
    assert asked == [True, False, False, False]


def test_what_cannot_be_rendered_is_not_judged_and_nobody_there_is_one_line(replies: Callable[..., str]) -> None:
    found = item_of(replies(answer("a"), answer("a"), stream({"content": "a"})), "reasoning as trained, syntax native")
    assert found.status == "not judged"
    assert "/nowhere" in found.seen
    with pytest.raises(ServeError, match="no server responds at http://127"):
        item_of("http://127.0.0.1:9/v1", "streaming")
