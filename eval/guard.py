"""Who may ask, and what a browser may do with the answers: pure ASGI, around everything else."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

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
    """Refuses whoever has no business here, over HTTP and WebSockets. Every server that we start is behind one.

    - The host name that is asked for must be one of this server's: a page elsewhere whose name is made to resolve to
      this address (DNS rebinding) asks for its own name.
    - A page of another site or another port gets no answer, even if the browser would send a cookie.
    - With a token, every request must carry it, as a bearer token. Nothing else is asked of a program that does, as no
      browser sends it by itself.

    Args:
        app: what is guarded.
        loopback: only this machine may ask; else any numeric address may, and the names in `names`.
        names: other names of this server; None: any name, if there is a token.
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
        headers = Headers(scope=scope)
        if not self._any_name and not self._is_name(headers.get("host", "")):
            return PlainTextResponse("This is no name of this server.\n", 421)
        if self._token is not None and self._bears_token(headers):
            return None
        if _is_from_elsewhere(headers):
            return PlainTextResponse("Other sites get nothing from here.\n", 403)
        if self._token is None:
            return None
        if self._page:
            return self._ask_for_token(scope, headers)
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

    def _ask_for_token(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        given = parse_qsl(scope.get("query_string", b"").decode("latin-1"))
        if any(name == "token" and self._is_token(value) for name, value in given):
            rest = urlencode([(name, value) for name, value in given if name != "token"])
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(COOKIE, self._token or "", httponly=True, samesite="strict")
            return answer
        if self._is_token(_cookie(headers)):
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
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _cookie(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[COOKIE].value if COOKIE in cookies else ""
