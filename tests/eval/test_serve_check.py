"""`gumshoe serve --check`: a real server that does some of it, and small real ones that get things wrong."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from gumshoe.cli import main
from gumshoe.errors import ServeError
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.check import CheckItem, check_server
from gumshoe.eval.serve.check.answer_form import length_stop, streaming, token_counts
from gumshoe.eval.serve.check.calls import forced_call, native_call, text_call
from gumshoe.eval.serve.check.rendering import same_rendering
from gumshoe.eval.serve.check.samples import TOOLS, TURNS
from gumshoe.eval.serve.check.sent_back import sent_back
from gumshoe.eval.serve.check.trained import TrainedRow, Unrendered, render_rows
from gumshoe.eval.serve.check.wire import Wire

NAMES = {tool.name for tool in TOOLS}


def test_transformers_serve_does_what_it_is_known_to_do(served: ModelServer, micro_model: Path) -> None:
    found = {one.item: one for one in check_server(served.base_url, served.model, micro_model, ask="good")}
    assert found["native calls"].status == "not supported"
    assert found["text calls"] == CheckItem("text calls", "ok", 'view {"path": "a.py"}')
    for item in ("streaming", "stop at length", "token counts"):
        assert found[item].status == "ok", found[item]
    for name in ("conversation", "parallel calls", "reasoning"):
        assert found[f"{name} as trained, syntax template"].status == "ok"
        assert "by their number" in found[f"{name} as trained, syntax template"].seen
        assert found[f"{name} as trained, syntax native"].status == "not supported"
    for item in ("required tool choice", "named tool choice", "sampled tokens"):
        assert found[item].status in {"not supported", "not judged"}, found[item]


def test_the_command_checks_a_server_that_runs_already(
    served: ModelServer, micro_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["serve", str(micro_model), "--check", "--ask", "good", "--url", served.base_url]
    assert main([*argv, "--served-name", served.model]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 17
    assert shown[1].split("  ")[0] == "ok"
    assert main(["serve", str(micro_model), "--url", served.base_url]) == 2
    assert "--url needs --check" in capsys.readouterr().err


def test_reasoning_that_the_template_leaves_out_is_not_judged(
    served: ModelServer, micro_model: Path, tmp_path: Path
) -> None:
    from trl.chat_template_utils import qwen2_5_chat_template

    folder = tmp_path / "model"
    shutil.copytree(micro_model, folder)
    (folder / "chat_template.jinja").write_text(qwen2_5_chat_template)
    found = {one.item: one for one in check_server(served.base_url, served.model, folder, ask="good")}
    for syntax in ("template", "native"):
        item = found[f"reasoning as trained, syntax {syntax}"]
        assert (item.status, "leaves reasoning out" in item.seen) == ("not judged", True)


def test_the_training_path_that_cannot_render_is_not_judged(tmp_path: Path) -> None:
    with pytest.raises(Unrendered, match="the training path cannot render here"):
        render_rows(tmp_path, [TURNS], TOOLS)


Reply = tuple[int, Any]


@pytest.fixture
def replies() -> Iterator[Callable[..., Wire]]:
    """A server that gives each request the next of some replies: a status, and an object or a stream's text."""
    servers: list[http.server.ThreadingHTTPServer] = []
    wires: list[Wire] = []

    def serve(*script: Reply) -> Wire:
        left = list(script)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, body = left.pop(0) if len(left) > 1 else left[0]
                if callable(body):
                    status, body = cast("tuple[int, object]", body(request))
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        wires.append(Wire(f"http://127.0.0.1:{server.server_port}/v1", "m"))
        return wires[-1]

    yield serve
    for wire in wires:
        wire.close()
    for server in servers:
        server.shutdown()
        server.server_close()


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
        (answer("", ("view", "{")), "wrong", "arguments that are no JSON: '{'"),
        (answer("", ("view", '"a"')), "wrong", "arguments that are no object: 'a'"),
        (answer("<tool_call>{}"), "not supported", "calls stay in the text"),
        (answer("Hello"), "not judged", "the model called no tool: 'Hello'"),
        ((400, {"error": "no tools here"}), "not supported", "no tools here"),
        ((500, "boom"), "wrong", "HTTP 500: boom"),
        ((200, "no json"), "wrong", "HTTP 200: no json"),
        ((200, {"choices": []}), "not judged", "called no tool"),
    ],
)
def test_native_calls_are_judged(replies: Callable[..., Wire], reply: Reply, status: str, seen: str) -> None:
    verdict = native_call(replies(reply), "x", TOOLS)
    assert verdict.status == status
    assert seen in verdict.seen


@pytest.mark.parametrize(
    ("reply", "status", "seen"),
    [
        (answer("", VIEW), "ok", "they come as native calls"),
        (answer('<tool_call>{"name": "view", "arguments": {"path": "a"}}</tool_call>'), "ok", 'view {"path": "a"}'),
        (answer("<tool_call>{</tool_call>"), "not judged", "the model's call was no valid one"),
        (answer("Hello"), "not judged", "called no tool"),
        ((503, "later"), "wrong", "HTTP 503: later"),
    ],
)
def test_text_calls_are_judged(replies: Callable[..., Wire], reply: Reply, status: str, seen: str) -> None:
    verdict = text_call(replies(reply), "x", TOOLS)
    assert verdict.status == status
    assert seen in verdict.seen


@pytest.mark.parametrize(
    ("reply", "status", "seen"),
    [
        (answer("", VIEW), "ok", "view"),
        (answer("", ("view", '"a')), "wrong", "no JSON"),
        (answer("", ("view", '"a'), finish="length"), "not judged", "reached the length limit: arguments"),
        (answer("<tool_call>{", finish="length"), "not judged", "before it was whole"),
        (answer('<tool_call>{"name": "view", "arguments": {}}</tool_call>'), "not supported", "the model called view"),
        (answer("Hello"), "not supported", "the choice is ignored; the model wrote 'Hello'"),
        ((422, "no"), "not supported", "no"),
        ((500, "no"), "wrong", "HTTP 500"),
    ],
)
def test_forced_calls_are_judged(replies: Callable[..., Wire], reply: Reply, status: str, seen: str) -> None:
    verdict = forced_call(replies(reply), "required", "required", NAMES, TOOLS)
    assert verdict.status == status
    assert seen in verdict.seen


def stream(*deltas: dict[str, Any], finish: str = "stop", done: bool = True) -> Reply:
    pieces = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    pieces += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": {}}]
    return 200, "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + ("data: [DONE]\n\n" if done else "")


def part(index: int, **function: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": function}]}


@pytest.mark.parametrize(
    ("whole", "pieces", "status", "seen"),
    [
        (answer("ab"), stream({"content": "a"}, {"content": "b"}), "ok", "4 pieces"),
        (answer("ab"), stream({"content": "ab"}, done=False), "ok", "no [DONE] behind them"),
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
def test_streams_are_judged(replies: Callable[..., Wire], whole: Reply, pieces: Reply, status: str, seen: str) -> None:
    verdict = streaming(replies(whole, pieces), "x", TOOLS)
    assert verdict.status == status
    assert seen in verdict.seen


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (answer("a", finish="length", completion_tokens=5), "ok"),
        (answer("a", finish="length", completion_tokens=9), "wrong"),
        (answer("a", completion_tokens=2), "not judged"),
        ((500, "no"), "wrong"),
    ],
)
def test_the_length_limit_is_judged(replies: Callable[..., Wire], reply: Reply, status: str) -> None:
    assert length_stop(replies(reply), "x").status == status


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ((3, 2, 5), (6, 1, 7), "ok"),
        ((3, 2, 6), (6, 1, 7), "wrong"),
        ((3, 2, 5), (3, 1, 4), "wrong"),
        (None, (3, 1, 4), "wrong"),
    ],
)
def test_token_counts_are_judged(
    replies: Callable[..., Wire], first: tuple[int, ...] | None, second: tuple[int, ...], status: str
) -> None:
    def counted(counts: tuple[int, ...] | None) -> Reply:
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        return answer("a", **dict(zip(names, counts or (), strict=False)))

    assert token_counts(replies(counted(first), counted(second)), "x", TOOLS).status == status


def rendering(wire: Wire, syntax: str = "template", starts: tuple[int, ...] = (3, 3, 3)) -> CheckItem:
    return same_rendering(wire, "t", syntax, TURNS, TOOLS, TrainedRow((1, 2, 3, 4), starts))


def tokens(*ids: int) -> Reply:
    status, body = answer("a", prompt_tokens=len(ids))
    return status, {**body, "prompt_token_ids": list(ids)}


def test_prompts_are_compared_token_by_token(replies: Callable[..., Wire]) -> None:
    assert rendering(replies(tokens(1, 2, 3))) == CheckItem("t", "ok", "3 prompts compared token by token")
    wrong = rendering(replies(tokens(1, 9, 3)))
    assert (wrong.status, wrong.seen) == ("wrong", "turn 0: served 3 tokens, trained 3, alike up to token 1")
    assert rendering(replies(tokens(1, 2)), "native").status == "not supported"
    assert rendering(replies(tokens(1, 2)), starts=(1,)).seen == "3 turns, of which 1 train"


def test_a_server_that_knows_no_token_ids_is_asked_without(replies: Callable[..., Wire]) -> None:
    asked: list[bool] = []

    def strict(request: dict[str, Any]) -> Reply:
        asked.append("return_token_ids" in request)
        return (422, "unknown field") if asked[-1] else answer("a", prompt_tokens=3)

    verdict = rendering(replies((200, strict)))
    assert (verdict.status, asked) == ("ok", [True, False, False, False])


def test_a_refused_prompt_is_said_so(replies: Callable[..., Wire]) -> None:
    assert rendering(replies((400, "no tools"))).seen == "HTTP 400: no tools"
    assert rendering(replies((500, "no"))).status == "wrong"


def sampled(pieces: tuple[str, ...], *calls: tuple[str, str]) -> Reply:
    """A turn of the model: the prompt is the tokens 1 and 2, and the pieces that it wrote are tokens from 10 on."""
    status, body = answer(pieces[0], *calls)
    (choice,) = body["choices"]
    written = {"token_ids": list(range(10, 10 + len(pieces)))}
    written |= {"logprobs": {"content": [{"token": piece, "logprob": -0.1} for piece in pieces]}}
    return status, {**body, "prompt_token_ids": [1, 2], "choices": [{**choice, **written}]}


TURN = ("I look.", "\n", "<tool_call>", '{"name": ...}', "</tool_call>")


@pytest.mark.parametrize(
    ("first", "second", "status", "seen"),
    [
        (sampled(TURN, VIEW), tokens(1, 2, 10, 11, 12, 13, 14, 5, 6), "ok", "5 tokens"),
        (sampled(TURN, VIEW), tokens(1, 2, 10, 11, 11, 12, 13, 14, 5), "wrong", "token 2 of the turn comes back as"),
        (sampled(TURN, VIEW), tokens(1, 7, 10, 11, 12, 13, 14), "wrong", "comes back as another one"),
        (sampled(TURN, VIEW), tokens(1, 2, 10, 11, 12, 20, 14, 5), "not judged", "alike up to token 3"),
        (sampled(TURN, VIEW), answer("a", prompt_tokens=9), "wrong", "no tokens of the second prompt"),
        (sampled(("```", "{...}"), VIEW), tokens(1, 2, 12), "not judged", "without the template's tags"),
        (sampled(("Hello.",)), tokens(1, 2), "not judged", "called no tool: 'Hello.'"),
        (answer("", VIEW), tokens(1, 2), "not judged", "does not name the tokens"),
        ((422, "unknown field"), tokens(1, 2), "not supported", "unknown field"),
        ((500, "boom"), tokens(1, 2), "wrong", "HTTP 500: boom"),
    ],
)
def test_a_turn_that_is_sent_back_is_compared_with_what_was_sampled(
    replies: Callable[..., Wire], first: Reply, second: Reply, status: str, seen: str
) -> None:
    verdict = sent_back(replies(first, second), "native", "x", TOOLS)
    assert verdict.status == status
    assert seen in verdict.seen


def test_nobody_there_is_one_line() -> None:
    with pytest.raises(ServeError, match="no server responds at http://127"):
        list(check_server("http://127.0.0.1:9/v1", "m", Path("/nowhere")))
