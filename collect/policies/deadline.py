"""One time limit and one size limit for a whole HTTP request: connecting, waiting, headers and body.

An HTTP client's own timeouts start again with every piece that arrives, so a server that drips its body outlives them.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2

__all__ = ["MAX_ANSWER_BYTES", "BoundedTransport", "request_limits"]

MAX_ANSWER_BYTES = 64 << 20


@dataclass
class _Budget:
    deadline: float
    bytes_left: int

    def seconds(self, timeout: float | None) -> float:
        """What is left, or `timeout` where that is less. Raises httpcore2.ReadTimeout when nothing is left."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout
        return left if timeout is None else min(left, timeout)

    def take(self, data: bytes) -> bytes:
        """Counts what has arrived. Raises httpcore2.ReadError if that is more than an answer may have."""
        self.bytes_left -= len(data)
        if self.bytes_left < 0:
            raise httpcore2.ReadError(f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        return data


_budget: ContextVar[_Budget | None] = ContextVar("request_budget", default=None)


@contextmanager
def request_limits(seconds: float, size: int = MAX_ANSWER_BYTES) -> Generator[None]:
    """Bounds what this thread's requests over a `BoundedTransport` may take.

    Args:
        seconds: from now to the last byte.
        size: bytes that may arrive, headers included.
    """
    token = _budget.set(_Budget(time.monotonic() + seconds, size))
    try:
        yield
    finally:
        _budget.reset(token)


class BoundedTransport(httpx2.BaseTransport):
    """HTTP for a client whose requests are made within `request_limits`.

    A proxy named in the environment gets a transport of the client's own, to which only the client's timeouts apply.
    """

    def __init__(self) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(), network_backend=_Backend(), keepalive_expiry=5.0
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request. Raises httpx2.TransportError."""
        url = request.url
        assert isinstance(request.stream, httpx2.SyncByteStream)
        sent = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_client_errors():
            answer = self._pool.handle_request(sent)
        assert isinstance(answer.stream, Iterable)
        return httpx2.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_Body(answer.stream),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        """Closes the connections. Idempotent."""
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_client_errors():
            yield from self._stream

    def close(self) -> None:
        close: Any = getattr(self._stream, "close", None)
        if close is not None:
            close()


class _Backend(httpcore2.NetworkBackend):
    def __init__(self) -> None:
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.connect_tcp(host, port, _seconds(timeout), local_address, socket_options))

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(max_bytes, _seconds(timeout))
        budget = _budget.get()
        return data if budget is None else budget.take(data)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _seconds(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _seconds(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _seconds(timeout: float | None) -> float | None:
    budget = _budget.get()
    return timeout if budget is None else budget.seconds(timeout)


@contextmanager
def _as_client_errors() -> Generator[None]:
    """Raises the connection pool's errors as those of the HTTP client, which the providers' SDKs know."""
    try:
        yield
    except httpcore2.TimeoutException:
        raise httpx2.ReadTimeout("the request took longer than its time limit") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.UnsupportedProtocol) as error:
        raise httpx2.TransportError(str(error) or type(error).__name__) from None
