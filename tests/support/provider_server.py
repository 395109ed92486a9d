"""A local HTTP server that plays an OpenAI-compatible provider, faults included."""

import json
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", dict[str, Any]], None]
EVENTS = "text/event-stream"


@dataclass
class Provider:
    """The server's address, its answers in order, and what it was sent."""

    url: str
    answers: list[Answer]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Gives the next answer of its provider; the last one stays."""

    provider: Provider
    guard: threading.Lock
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # It would hold the body back for 40 ms.

    def do_POST(self) -> None:
        self.give_answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def do_GET(self) -> None:
        """What carries no body is answered as if it carried an empty one; the list of models takes no answer."""
        self.give_answer({})

    def give_answer(self, body: dict[str, Any]) -> None:
        answers = self.provider.answers
        listed = self.path.endswith("/models")
        with self.guard:
            if self.command == "POST":
                self.provider.requests.append(body)
            self.provider.paths.append(self.path)
            self.provider.headers.append({key.lower(): value for key, value in self.headers.items()})
            answer = answers[0] if listed or len(answers) == 1 else answers.pop(0)
        self.reply(200, b"{}") if listed else answer(self, body)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def provider(*answers: Answer) -> Generator[Provider]:
    """A server that gives `answers` in order and stays at the last."""
    played = Provider("", list(answers))
    handler = type("Playing", (Handler,), {"provider": played, "guard": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    played.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def chat(
    content: str | None = "", calls: Sequence[tuple[str, Any]] = (), finish: str | None = None, **message: Any
) -> Answer:
    """A whole chat completion. A call is (name, arguments): an object is sent as JSON text, a text as it is."""
    return lambda handler, body: handler.reply(
        200, json.dumps(completion(content, calls, finish, body["model"], **message)).encode()
    )


def completion(
    content: str | None, calls: Sequence[tuple[str, Any]], finish: str | None, model: str, **message: Any
) -> dict[str, Any]:
    functions = [
        {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)} for name, given in calls
    ]
    tool_calls = [{"id": f"call_{n}", "type": "function", "function": each} for n, each in enumerate(functions)]
    said = {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if calls else {}), **message}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": said, "finish_reason": finish or ("tool_calls" if calls else "stop")}],
        "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 60}},
    }


def fault(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    """An error as the API shapes it."""
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return lambda handler, _: handler.reply(status, body, **headers)


def raw(body: bytes, kind: str = "application/json", status: int = 200) -> Answer:
    """Any body."""
    return lambda handler, _: handler.reply(status, body, kind)


def hang_up(after: bytes = b"", kind: str = "application/json", seconds: float = 0.0) -> Answer:
    """Promises more than it sends, waits, then closes the connection."""

    def answer(handler: Handler, _: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(after) + 1000))
        handler.end_headers()
        handler.wfile.write(after)
        handler.wfile.flush()
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def stall(seconds: float) -> Answer:
    """Says nothing for a while, then hangs up."""

    def answer(handler: Handler, _: dict[str, Any]) -> None:
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def _sent(body: dict[str, Any], *events: dict[str, Any]) -> str:
    """Server-sent events, as parts of the answer to a request."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    return "".join(f"data: {json.dumps({**head, **event})}\n\n" for event in events)


def _piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def stall_midway(seconds: float, *deltas: dict[str, Any]) -> Answer:
    """Begins an answer in pieces, then says nothing for a while."""
    return lambda handler, body: hang_up(_sent(body, *map(_piece, deltas)).encode(), EVENTS, seconds)(handler, body)


def stream(*deltas: dict[str, Any], finish: str | None = "tool_calls", done: bool = True) -> Answer:
    """An answer in pieces, as server-sent events."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        last = [] if finish is None else [_piece({}, finish)]
        usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}
        text = _sent(body, *map(_piece, deltas), *last, usage)
        handler.reply(200, (text + ("data: [DONE]\n\n" if done else "")).encode(), EVENTS)

    return answer
