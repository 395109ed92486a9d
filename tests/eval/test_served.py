"""The server's process, from its start to its end, and what `gumshoe serve --check` finds in servers."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from gumshoe.cli import main
from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.check import CONVERSATIONS, CheckedModel, CheckItem, check_server, judge_rendering
from support.provider_server import Answer, Handler, provider
from support.sandboxes.processes import state

MakeServer = Callable[..., ModelServer]
Replies = Callable[..., str]
GUARDIAN = Path(__file__).parents[2] / "eval" / "serve" / "guardian.py"


def until(condition: Callable[[], bool], seconds: float = 120.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def gone(pid: int) -> bool:
    return state(pid) in {"Z", ""}


FAKE = """
import http.server, os, pathlib, sys
crashes = pathlib.Path(sys.argv[0]).parent / "crashes"
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            print("out of memory, says the server", flush=True)
            os._exit(7)
        self.send_response(200); self.end_headers(); self.wfile.write(str(os.getpid()).encode())
    def log_message(self, *arguments): pass
print("starting", flush=True)
if crashes.exists():
    print("the weights do not fit", flush=True)
    sys.exit(3)
http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def small_server(tmp_path: Path, micro_model: Path) -> Iterator[MakeServer]:
    """Makes servers whose program is a small real HTTP server, installed where `python -m` finds vLLM's."""
    package = tmp_path / "site" / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    (package / "api_server.py").write_text(FAKE)
    metadata = tmp_path / "site" / "vllm-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 1.0\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    made: list[ModelServer] = []

    def make(**options: Any) -> ModelServer:
        given: dict[str, Any] = {"startup_s": 120.0, **options}
        config = ServeConfig(backend="vllm", python=str(python), **given)
        made.append(ModelServer(micro_model, config, log=tmp_path / "server.log"))
        return made[-1]

    yield make
    for server in made:
        server.close()


def get(base_url: str, path: str = "/health") -> str:
    try:
        return httpx2.get(base_url.removesuffix("/v1") + path, timeout=5).text
    except httpx2.HTTPError:
        return ""


def test_a_server_that_dies_is_started_again_on_the_same_port(small_server: MakeServer) -> None:
    with small_server(restarts=1) as server:
        first = get(server.base_url)
        get(server.base_url, "/die")
        assert until(lambda: get(server.base_url) not in ("", first))
        assert server.restarts == 1
        get(server.base_url, "/die")
        with pytest.raises(ServeError, match=r"died \(exit code 7\) after 1 restarts: out of memory, says the server"):
            server.wait()


def test_a_server_that_dies_at_once_gives_its_last_words(small_server: MakeServer, tmp_path: Path) -> None:
    server = small_server()
    (tmp_path / "site" / "vllm" / "entrypoints" / "openai" / "crashes").touch()
    with pytest.raises(ServeError, match=r"died \(exit code 3\): the weights do not fit \(all of it: .*server\.log\)"):
        server.start()


def test_what_cannot_be_started_is_refused(small_server: MakeServer, micro_model: Path, tmp_path: Path) -> None:
    in_transformers = ServeConfig(backend="transformers", name="a/b")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for server, said in (
            (small_server(startup_s=0.01), r"did not answer within 0\.01 s"),
            (small_server(port=port), f"port {port} on 127.0.0.1 cannot be used .*another --port"),
            (small_server(host="192.0.2.1"), r"cannot listen on 192.0.2.1 \(Cannot assign requested address\)"),
            (ModelServer(micro_model, ServeConfig(), log=tmp_path), f"the log {tmp_path} cannot be written: Is a dir"),
            (ModelServer(micro_model, in_transformers), "cannot serve a model as 'a/b'"),
            (ModelServer(Path("/nowhere")), r"there is no model folder .*nowhere"),
        ):
            with pytest.raises(ServeError, match=said):
                server.start()


def test_killing_whoever_started_it_stops_the_server(small_server: MakeServer) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from gumshoe.eval.serve import ModelServer; from gumshoe.eval.config import ServeConfig\n"
        "server = ModelServer(Path(sys.argv[1]), ServeConfig(backend='vllm', python=sys.argv[2]))\n"
        "server.start(); print(server.base_url, flush=True); time.sleep(600)"
    )
    shape = small_server()
    parent = subprocess.Popen(
        [sys.executable, "-c", program, str(shape.folder), str(shape.config.python)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    base_url = parent.stdout.readline().strip()
    pid = int(get(base_url))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert until(lambda: gone(pid))


def run_guardian(*argv: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-I", str(GUARDIAN), *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        ((sys.executable, "-c", "raise SystemExit(5)"), 5),
        ((sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"), 137),
        (("/nowhere/program",), 127),
    ],
)
def test_the_guardian_passes_the_exit_code_on(argv: tuple[str, ...], code: int) -> None:
    with run_guardian(*argv) as guardian:
        assert guardian.wait(timeout=120) == code


@pytest.mark.parametrize("how", ["pipe", "signal"])
def test_the_guardian_takes_children_down_too(how: str) -> None:
    code = (
        "import subprocess, sys, time\n"
        "deaf = 'import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)'\n"
        "child = subprocess.Popen([sys.executable, '-c', deaf], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(600)"
    )
    with run_guardian(sys.executable, "-c", code) as guardian:
        assert guardian.stdout is not None
        assert guardian.stdin is not None
        child = int(guardian.stdout.readline())
        if how == "pipe":
            guardian.stdin.close()
        else:
            os.kill(guardian.pid, signal.SIGTERM)
        guardian.wait(timeout=120)
    assert until(lambda: gone(child))


def test_the_command_serves_until_it_is_told_to_stop(small_server: MakeServer, tmp_path: Path) -> None:
    shape = small_server()
    argv = [sys.executable, "-m", "gumshoe", "serve", str(shape.folder), "--port", "0", "--backend", "vllm"]
    argv += ["--python", str(shape.config.python), "--log", str(tmp_path / "log")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        lines = [command.stdout.readline() for _ in range(5)]
        assert "-m vllm.entrypoints.openai.api_server" in lines[0]
        pid = int(get(lines[2].split()[-1]))
        os.kill(command.pid, signal.SIGTERM)
        assert command.wait(timeout=120) == 0
    assert gone(pid)


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
def replies() -> Iterator[Replies]:
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
NATIVE, STREAM, A_CALL = "native calls", "streaming", answer("a call")


def stream(*deltas: dict[str, Any], finish: str = "stop") -> Reply:
    pieces = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    pieces += [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}, {"choices": [], "usage": {}}]
    return 200, "".join(f"data: {json.dumps(piece)}\n\n" for piece in pieces) + "data: [DONE]\n\n"


def part(index: int, **function: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": function}]}


@pytest.mark.parametrize(
    ("item", "script", "status", "seen"),
    [
        (NATIVE, (answer("", VIEW),), "ok", 'view {"path": "a"}'),
        (NATIVE, (answer("", VIEW, finish="stop"),), "wrong", "finish_reason is 'stop'"),
        (NATIVE, (answer("", ("veiw", "{}")),), "wrong", "a call of 'veiw', which was not offered"),
        (NATIVE, (answer("", ("view", "{")),), "wrong", "arguments that are no JSON object: '{'"),
        (NATIVE, (answer("<tool_call>{}"),), "not supported", "calls stay in the text"),
        (NATIVE, (answer("Hello"),), "not judged", "the model called no tool: 'Hello'"),
        (NATIVE, ((400, {"error": "no tools here"}),), "not supported", "no tools here"),
        (NATIVE, ((500, "boom"),), "wrong", "HTTP 500: boom"),
        (NATIVE, ((200, "no json"),), "wrong", "the answer is no chat completion"),
        (STREAM, (A_CALL, answer("ab"), stream({"content": "a"}, {"content": "b"})), "ok", "4 pieces"),
        (STREAM, (A_CALL, answer("ab"), stream({"content": "a"})), "wrong", "the text differs"),
        (STREAM, (A_CALL, answer("a"), stream({"content": "a"}, finish="length")), "wrong", "'length'"),
        (
            STREAM,
            (
                A_CALL, answer("", VIEW, VIEW),
                stream(
                    part(0, name="view"), part(0, arguments='{"path": "a"}'), part(1, name=VIEW[0], arguments=VIEW[1]),
                    finish="tool_calls",
                ),
            ),
            "ok",
            "5 pieces",
        ),
        (STREAM, (A_CALL, answer("", VIEW), stream(part(0, name="view"))), "wrong", "calls differ"),
        (STREAM, (A_CALL, answer("a"), (400, "no")), "not supported", "HTTP 400"),
        (STREAM, (A_CALL, answer("a"), (500, "no")), "wrong", "HTTP 500"),
    ],
)  # fmt: skip
def test_calls_and_streams_are_judged(
    replies: Replies, item: str, script: Sequence[Reply], status: str, seen: str
) -> None:
    verdict = item_of(replies(*script), item)
    assert verdict.status == status
    assert seen in verdict.seen


def tokens(*ids: int) -> Reply:
    status, body = answer("a", prompt_tokens=len(ids))
    return status, {**body, "prompt_token_ids": list(ids)}


def test_prompts_are_compared_token_by_token(replies: Replies) -> None:
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


def test_what_cannot_be_rendered_is_not_judged_and_nobody_there_is_one_line(replies: Replies) -> None:
    found = item_of(replies(answer("a"), answer("a"), stream({"content": "a"})), "reasoning as trained, syntax native")
    assert found.status == "not judged"
    assert "/nowhere" in found.seen
    with pytest.raises(ServeError, match="no server responds at http://127"):
        item_of("http://127.0.0.1:9/v1", "streaming")
