"""Servers for programs on this machine, or, with a token, on others."""

from __future__ import annotations

import signal
import socket

import uvicorn

from gumshoe.errors import ConfigError
from gumshoe.eval.guard import Guard

__all__ = ["listen", "serve", "url_of"]

SHUTDOWN_S = 3


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 picks a free port. Raises ConfigError."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot listen on {host} port {port}: {reason} (--port 0 takes a free one)") from None


def url_of(listening: socket.socket) -> str:
    """The socket's address for programs on this machine, without a slash at the end."""
    address: tuple[str, int] = listening.getsockname()[:2]
    host, port = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0]), address[1]  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: Guard, listening: socket.socket) -> None:
    """Answers until SIGINT or SIGTERM; then the application's lifespan ends."""
    config = uvicorn.Config(
        app, log_level="warning", lifespan="on", server_header=False, timeout_graceful_shutdown=SHUTDOWN_S
    )
    # uvicorn raises the signal again after it has shut down, which would end the process before it has cleaned up.
    earlier = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
