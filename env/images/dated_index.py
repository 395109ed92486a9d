"""A package index as of a given day: a server on loopback that shows pip what had been uploaded by then.

It asks the index that pip is configured with on this machine, so that the environments of old commits get the packages
of their time, with any version of pip. Credentials stay here: whoever installs sees only addresses of this server.
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import shutil
import ssl
import threading
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from gumshoe.env.harvest.pip_settings import PipSettings

__all__ = ["Upstream", "dated_index", "page_of"]

JSON = "application/vnd.pypi.simple.v1+json"
PYPI = "https://pypi.org/simple"
TIMEOUT_S = 180


@dataclass(frozen=True)
class Upstream:
    """The index that is asked.

    Args:
        url: without credentials.
        certificates: a file with the authorities to trust; empty: the system's.
        login: `user:password`; empty: none.
    """

    url: str = PYPI
    certificates: str = ""
    login: str = ""

    @staticmethod
    def of_this_machine() -> Upstream:
        """The index of pip's settings."""
        settings = PipSettings.of_this_machine().environment
        parts = urlsplit(settings.get("PIP_INDEX_URL", PYPI).rstrip("/"))
        login, _, host = parts.netloc.rpartition("@")
        return Upstream(urlunsplit(parts._replace(netloc=host)), settings.get("PIP_CERT", ""), unquote(login))

    def open(self, url: str, accept: str = "*/*") -> Any:
        """The answer to a request, to be read and closed. Raises OSError."""
        headers = {"Accept": accept, "User-Agent": "gumshoe"}
        if self.login and urlsplit(url).netloc == urlsplit(self.url).netloc:
            headers["Authorization"] = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        context = ssl.create_default_context(cafile=self.certificates or None)
        return urlopen(Request(url, headers=headers), timeout=TIMEOUT_S, context=context)


@dataclass
class _Server:
    upstream: Upstream
    until: datetime
    undated: frozenset[str]
    places: dict[str, str] = field(default_factory=dict[str, str])


@contextlib.contextmanager
def dated_index(until: datetime, upstream: Upstream, undated: Iterable[str] = ()) -> Generator[str]:
    """Serves the index while the context lasts, and yields its address.

    Args:
        until: later uploads are not shown.
        upstream: the index that is asked.
        undated: packages whose files are all shown, such as those whose version is given.
    """
    facts = _Server(upstream, until, frozenset(undated))

    class IndexHandler(_Handler):
        server_facts = facts

    with ThreadingHTTPServer(("127.0.0.1", 0), IndexHandler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server_facts: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: pip reports what fails."""

    def do_GET(self) -> None:
        kind, _, rest = self.path.strip("/").partition("/")
        try:
            if kind == "simple" and rest and "/" not in rest:
                self._page(rest)
            elif kind == "files" and (url := self.server_facts.places.get(unquote(rest))):
                self._file(url)
            else:
                self.send_error(404)
        except HTTPError as error:
            self.send_error(error.code, "the index refuses")
        except (URLError, ValueError, KeyError, TypeError, TimeoutError) as error:
            self.send_error(502, " ".join(str(error).split())[:200])

    def _page(self, name: str) -> None:
        facts = self.server_facts
        url = f"{facts.upstream.url}/{quote(name)}/"
        with facts.upstream.open(url, JSON) as answer:
            files = json.load(answer)["files"]
        until = None if name in facts.undated else facts.until
        page, places = page_of(files, url, until)
        facts.places.update(places)
        data = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _file(self, url: str) -> None:
        with self.server_facts.upstream.open(url) as answer:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            if length := answer.headers.get("Content-Length"):
                self.send_header("Content-Length", length)
            self.end_headers()
            shutil.copyfileobj(answer, self.wfile)


def page_of(files: Iterable[Mapping[str, Any]], url: str, until: datetime | None) -> tuple[str, dict[str, str]]:
    """The page of a package in a form that any version of pip reads, and where its files are.

    Args:
        files: what the index's JSON lists.
        url: where this list is; the files' URLs may be relative to it.
        until: later uploads are left out; None: nothing is.

    Raises:
        ValueError: the index does not say when files were uploaded.
    """
    lines, places = [], {}
    for file in files:
        name = file["filename"]
        if until is not None:
            uploaded = file.get("upload-time")
            if not uploaded:
                raise ValueError(f"the index does not say when {name} was uploaded")
            if datetime.fromisoformat(uploaded) > until:
                continue
        places[name] = urljoin(url, file["url"])
        marks = ""
        if requires := file.get("requires-python"):
            marks += f' data-requires-python="{html.escape(requires)}"'
        if file.get("yanked"):
            marks += ' data-yanked=""'
        hashed = f"#sha256={value}" if (value := (file.get("hashes") or {}).get("sha256")) else ""
        lines.append(f'<a href="/files/{quote(name)}{hashed}"{marks}>{html.escape(name)}</a><br>')
    return "<!DOCTYPE html><html><body>\n" + "\n".join(lines) + "\n</body></html>\n", places
