"""A local HTTP server that plays an OpenAI-compatible provider, faults included."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Handler", dict[str, Any]], None]


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
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.guard:
            self.provider.requests.append(body)
            self.provider.paths.append(self.path)
            self.provider.headers.append({key.lower(): value for key, value in self.headers.items()})
            answer = self.provider.answers.pop(0) if len(self.provider.answers) > 1 else self.provider.answers[0]
        answer(self, body)

    def do_GET(self) -> None:
        """What carries no body is answered as if it carried an empty one; the list of models takes no answer."""
        with self.guard:
            self.provider.paths.append(self.path)
            self.provider.headers.append({key.lower(): value for key, value in self.headers.items()})
            listed = self.path.endswith("/models")
            last = listed or len(self.provider.answers) == 1
            answer = self.provider.answers[0] if last else self.provider.answers.pop(0)
        self.reply(200, b"{}") if listed else answer(self, {})

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

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        handler.reply(200, json.dumps(completion(content, calls, finish, body["model"], **message)).encode())

    return answer


def completion(
    content: str | None, calls: Sequence[tuple[str, Any]], finish: str | None, model: str, **message: Any
) -> dict[str, Any]:
    tool_calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    said = {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if calls else {}), **message}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {"index": 0, "message": said, "finish_reason": finish or ("tool_calls" if calls else "stop")},
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 10,
            "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 60},
        },
    }


def fault(status: int, message: str = "no", code: str | None = None, **headers: str) -> Answer:
    """An error as the API shapes it."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        del body
        handler.reply(status, json.dumps({"error": {"message": message, "code": code}}).encode(), **headers)

    return answer


def raw(body: bytes, kind: str = "application/json", status: int = 200) -> Answer:
    """Any body."""
    return lambda handler, _: handler.reply(status, body, kind)


def hang_up(after: bytes = b"") -> Answer:
    """Promises more than it sends, then closes the connection."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        del body
        handler.send_response(200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(after) + 1000))
        handler.end_headers()
        handler.wfile.write(after)
        handler.close_connection = True

    return answer


def stall(seconds: float) -> Answer:
    """Says nothing for a while, then hangs up."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        del body
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def stall_midway(seconds: float, *deltas: dict[str, Any]) -> Answer:
    """Begins an answer in pieces, then says nothing for a while."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for delta in deltas:
            event = {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            handler.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        handler.wfile.flush()
        time.sleep(seconds)
        handler.close_connection = True

    return answer


def stream(*deltas: dict[str, Any], finish: str | None = "tool_calls", done: bool = True) -> Answer:
    """An answer in pieces, as server-sent events."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        if finish is not None:
            events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        events.append({"choices": [], "usage": usage})
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        text = "".join(f"data: {json.dumps({**head, **event})}\n\n" for event in events)
        handler.reply(200, (text + ("data: [DONE]\n\n" if done else "")).encode(), "text/event-stream")

    return answer
