"""Servers that we start: who may ask, what a browser may do with the answers, and how they listen."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from urllib.parse import urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gumshoe.errors import ConfigError

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
COOKIE = "gumshoe_token"
SHUTDOWN_S = 3


class Guard:
    """Refuses whoever has no business here, over HTTP and WebSockets. The viewer,
    `gumshoe mcp` and `gumshoe openenv` are behind one; model servers are not.

    - The host name that is asked for must be one of this server's: a page elsewhere whose name is made to resolve to
      this address (DNS rebinding) asks for its own name.
    - A page of another site or another port gets no answer, even if the browser would send a cookie. It may link
      here, though: what browsers mark as navigation passes this test.
    - With a token, every request must carry it, as a bearer token or a page's cookie. A program that sends the bearer
      token may come from another site, as no browser sends it by itself; the host name must be right all the same.

    Args:
        app: what is guarded.
        loopback: only names of this machine may be asked for: `localhost`, loopback addresses, and `names`; else any
            numeric address may be, too.
        names: other names of this server; None: any name may be asked for, if there is a token.
        token: the token; None: no token is needed.
        page: browsers show the answers, so these come with headers that keep other sites out, and the token may be
            given once as `?token=`, which is turned into a cookie.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        loopback: bool,
        names: Iterable[str] | None = None,
        token: str | None = None,
        page: bool = False,
    ) -> None:
        self._app = app
        self._loopback = loopback
        self._any_name = names is None and token is not None
        self._names = {"localhost", *(name.lower() for name in names or ())}
        self._token = token
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers or passes on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        app = self._refusal(scope) or self._app
        await app(scope, receive, _with_headers(send) if self._page else send)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        connection = HTTPConnection(scope)
        headers = connection.headers
        if not self._any_name and not self._is_name(headers.get("host", "")):
            return PlainTextResponse("This is no name of this server.\n", 421)
        if self._token is not None and self._bears_token(headers):
            return None
        if _is_from_elsewhere(headers):
            return PlainTextResponse("Other sites get nothing from here.\n", 403)
        if self._token is None:
            return None
        if self._page:
            return self._ask_for_token(connection)
        return PlainTextResponse("The token is missing: Authorization: Bearer TOKEN\n", 401)

    def _is_name(self, host: str) -> bool:
        name = _name_of(host)
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._loopback

    def _ask_for_token(self, connection: HTTPConnection) -> ASGIApp | None:
        given = connection.query_params.multi_items()
        if any(name == "token" and self._is_token(value) for name, value in given):
            rest = urlencode([(name, value) for name, value in given if name != "token"])
            path = "/" + connection.scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(COOKIE, self._token or "", httponly=True, samesite="strict")
            return answer
        if self._is_token(connection.cookies.get(COOKIE, "")):
            return None
        return PlainTextResponse("Open the address that gumshoe printed: it carries a token.\n", 401)

    def _bears_token(self, headers: Headers) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(bearer)

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self._token or "").encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return send_with_headers


def _is_from_elsewhere(headers: Headers) -> bool:
    """Whether a page that this server did not send asks. Browsers name the page's origin, or at least the relation."""
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host", ""):
        return True
    site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode")
    return site in ("cross-site", "same-site") and mode != "navigate"


def _name_of(host: str) -> str:
    """The name in a Host header, without the port and the brackets of an IPv6 address."""
    return (host[1:].partition("]") if host.startswith("[") else host.partition(":"))[0].lower()


class WebServer:
    """A server that listens, so that its address is known before it answers; on a free port for 0.

    Raises ConfigError if it cannot listen there.
    """

    def __init__(self, app: Guard, host: str, port: int, *, websockets: bool = False) -> None:
        import uvicorn

        self._socket = _listen(host, port)
        config = uvicorn.Config(
            app,
            ws="auto" if websockets else "none",
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """Its address for programs on this machine, without a slash at the end."""
        address: tuple[str, int] = self._socket.getsockname()[:2]
        host, port = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address[0], address[0]), address[1]  # noqa: S104
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def serve(self) -> None:
        """Answers until SIGINT, SIGTERM or `stop`; then the application's lifespan ends."""
        # uvicorn raises the signal again after it has shut down, which would end the process before it has cleaned up.
        earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        is_main = threading.current_thread() is threading.main_thread()
        for number in earlier if is_main else ():
            signal.signal(number, lambda *_: None)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            for number, handler in earlier.items() if is_main else ():
                signal.signal(number, handler)
            self._socket.close()

    def stop(self) -> None:
        """Makes `serve` return, from any thread."""
        self._server.should_exit = True


def make_token(given: str | None, host: str) -> str | None:
    """The access token of a server on `host`: the given one, else a random one if other machines can connect."""
    return given or (None if is_loopback(host) else secrets.token_urlsafe(24))


def serve_programs(app: ASGIApp, title: str, *, host: str, port: int, token: str | None, path: str = "") -> None:
    """Serves an application to programs, behind a guard, and tells on stderr where and how to reach it.

    It answers at `path`; without a token, it has that of `make_token`. Raises ConfigError if it cannot listen there.
    """
    needed = make_token(token, host)
    server = WebServer(Guard(app, loopback=is_loopback(host), token=needed), host, port, websockets=True)
    print(f"{title} at {server.url}{path} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if needed is not None and not token:
        print(f"clients send the header Authorization: Bearer {needed}", file=sys.stderr, flush=True)
    server.serve()


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        if not 0 <= port <= 65535:  # The standard library would leave its socket open.
            raise OverflowError("a port is 0 to 65535")
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"cannot listen on {host} port {port}: {reason} (--port 0 takes a free one)") from None
