"""Who may ask, and what a browser may do with the answers: pure ASGI, around everything else."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CONTENT_POLICY", "Guard", "is_loopback"]

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
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


class Guard:
    """Refuses whoever has no business here.

    - The host name that the browser asks for must be one of this server's: a page elsewhere whose name is made to
      resolve to this address (DNS rebinding) asks for its own name.
    - With a token, every request must carry it: once as `?token=`, which is turned into a cookie, or as a bearer token.
    - Only GET and HEAD are answered. Another site's page gets no answer, even where the browser would send the cookie.

    Args:
        app: what is guarded.
        loopback: only this machine may ask; else any numeric address may, and the names in `names`.
        names: other names of this server.
        token: the token; None: no token is needed.
    """

    def __init__(self, app: ASGIApp, *, loopback: bool, names: Iterable[str] = (), token: str | None = None) -> None:
        self._app = app
        self._loopback = loopback
        self._names = {"localhost", *(name.lower() for name in names)}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers or passes on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("This server only shows things.\n", 405)
        if not self._may_be_called(headers.get("host", "")):
            return PlainTextResponse("This is no name of this server.\n", 421)
        if headers.get("sec-fetch-site", "none") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Other sites get nothing from here.\n", 403)
        return self._ask_for_token(scope, headers) if self._token is not None else None

    def _may_be_called(self, host: str) -> bool:
        name = _name_of(host)
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or not self._loopback

    def _ask_for_token(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        assert self._token is not None
        given = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        if any(name == "token" and self._is_token(value) for name, value in given):
            rest = urlencode([(name, value) for name, value in given if name != "token"])
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if (scheme.lower() == "bearer" and self._is_token(bearer)) or self._is_token(_cookie(headers)):
            return None
        return PlainTextResponse("Open the address that gumshoe view printed: it carries a token.\n", 401)

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


def _name_of(host: str) -> str:
    """The name in a Host header, without the port and the brackets of an IPv6 address."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
