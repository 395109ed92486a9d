"""A program in a sandbox whose only way out is one model's endpoint."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx2

from gumshoe.collect.run.control import Control, run_cancellable
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import SandboxError
from gumshoe.protocols import Session
from gumshoe.records import SessionReply, Usage
from gumshoe.tools.runs.interpreters import our_program

__all__ = ["Ran", "RelayTarget", "run_with_endpoint"]

PATH = re.compile(r"/[\w./-]*")
GRACE_S = 5.0
TAIL = 4000


class RelayTarget:
    """Sends requests from a sandbox to one server and nowhere else, and adds the key.

    Args:
        base_url: the server, such as http://127.0.0.1:8000/v1; None: every request is refused.
        key: sent as a bearer token; it never enters the sandbox.
        timeout_s: seconds to wait for one answer.

    Attributes:
        usage: what the answers say was used.
        answered: how many requests succeeded.
        failure: why the last failed request failed.
    """

    def __init__(self, base_url: str | None, key: str, timeout_s: float) -> None:
        self._base_url = base_url
        headers = {"authorization": f"Bearer {key}"}
        self._client = httpx2.Client(headers=headers, timeout=timeout_s, follow_redirects=False, trust_env=False)
        self.usage = Usage()
        self.answered = 0
        self.failure = ""

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The server's answer to a request from a program in a sandbox; the request's fields may hold anything."""
        path, method = request.get("path"), request.get("method")
        if self._base_url is None or not isinstance(path, str) or method not in ("GET", "POST"):
            return self._refusal(403, "there is no endpoint")
        if not PATH.fullmatch(path) or ".." in path:
            return self._refusal(403, f"{path!r} is no path of the endpoint")
        try:
            body = base64.b64decode(str(request.get("body", "")), validate=True)
            kind = {"content-type": str(request.get("type") or "application/json")}
            reply = self._client.request(method, self._base_url.rstrip("/") + path, content=body, headers=kind)
        except (httpx2.HTTPError, ValueError) as error:
            return self._refusal(502, f"{type(error).__name__}: {error}")
        if reply.is_success:
            self.answered += 1
            self.usage = self.usage + _usage(reply)
        else:
            self.failure = f"status {reply.status_code}: {reply.text[:200]}"
        return _message(reply.status_code, reply.headers.get("content-type", "application/json"), reply.content)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _refusal(self, status: int, why: str) -> dict[str, Any]:
        self.failure = why
        return _message(status, "text/plain", why.encode())


@dataclass(frozen=True)
class Ran:
    """How a program ended. `exit_code` is None if it was killed at its time limit; `output` holds its last output."""

    exit_code: int | None
    output: str
    seconds: float


def run_with_endpoint(
    sandbox: WardenSandbox,
    argv: Sequence[str],
    env: Mapping[str, str],
    endpoint: RelayTarget,
    *,
    timeout_s: float,
    control: Control,
) -> Ran:
    """Runs a program to its end in a sandbox, where `{base_url}` in arguments and variables is the endpoint's address.

    Raises:
        SandboxError: the sandbox broke.
        Interrupted: the run stops.
    """

    def give_up() -> None:
        with suppress(SandboxError):
            sandbox.give_up()

    sandbox.prepare_support()
    began = time.monotonic()
    session = sandbox.open_session([sandbox.python, *our_program(sandbox.support, "programs.relay")])
    try:
        message: dict[str, Any] = {"argv": list(argv), "env": dict(env)}
        output = ""
        while True:
            left = timeout_s - (time.monotonic() - began)
            reply = run_cancellable(control, lambda: _ask(session, message, left), give_up)  # noqa: B023 - called here
            output = (output + reply.output)[-TAIL:]
            request: Any = (reply.message or {}).get("request")
            if not isinstance(request, dict):
                break
            message = run_cancellable(control, lambda: endpoint.answer(request))  # noqa: B023 - called here
        code = (reply.message or {}).get("exit_code", reply.exit_code)
        return Ran(code if isinstance(code, int) else None, output, time.monotonic() - began)
    finally:
        session.close()


def _ask(session: Session, message: Mapping[str, Any], left_s: float) -> SessionReply:
    return session.request(message, max(GRACE_S / 100, left_s))


def _message(status: int, kind: str, body: bytes) -> dict[str, Any]:
    return {"status": status, "type": kind, "body": base64.b64encode(body).decode("ascii")}


def _usage(reply: httpx2.Response) -> Usage:
    try:
        stated = reply.json()["usage"]
        return Usage(prompt_tokens=stated["prompt_tokens"], completion_tokens=stated["completion_tokens"])
    except (ValueError, KeyError, TypeError):
        return Usage()
