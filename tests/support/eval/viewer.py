"""The viewer over a folder, behind a real server, and pages in a real browser in front of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from playwright.sync_api import Browser, Page, expect

from gumshoe.eval.view import library as view_library
from gumshoe.eval.view.library import Library
from gumshoe.eval.view.server import make_app
from gumshoe.eval.view.sources import GoldPatches
from gumshoe.eval.web import WebServer

PATIENCE_MS = 180_000
"""How long anything may take: much, as a busy machine is no mistake of the page. What is right is seen at once."""


expect.set_options(timeout=PATIENCE_MS)


def all_rows(library: Library) -> list[dict[str, Any]]:
    """Every row of the list, those in flight in front."""
    answer = library.rows("", 0)
    return [*answer["live"], *answer["rows"]]


@contextmanager
def open_library(*paths: Path, model: Path | None = None) -> Generator[Library]:
    """A library over folders, up to date."""
    with view_library.open_library(paths, GoldPatches(), model) as library:
        library.catalog.refresh()
        yield library


@contextmanager
def serving(library: Library, *, token: str | None = None) -> Generator[str]:
    """The library behind a server; gives its address without the last slash."""
    app = make_app(library, loopback=token is None, token=token)
    listening = WebServer(app, "127.0.0.1", 0)
    thread = threading.Thread(target=listening.serve, daemon=True)
    library.catalog.start()
    thread.start()
    try:
        yield listening.url
    finally:
        listening.stop()
        thread.join()


def get(address: str, **options: Any) -> httpx2.Response:
    """What the server answers, however busy the machine is."""
    return httpx2.get(address, timeout=PATIENCE_MS / 1000, **options)


@contextmanager
def quiet_page(browser: Browser, *, width: int = 1280, height: int = 800, dark: bool = False) -> Generator[Page]:
    """A page that says nothing on its console: no error, no warning, nothing refused by the content policy.

    The browser's one page serves all tests in turn, since a new one takes longer than most of them. Nothing that a
    site has stored stays there, and after a failure the page is thrown away.
    """
    context = browser.contexts[0] if browser.contexts else browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.pages[0] if context.pages else context.new_page()
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(color_scheme="dark" if dark else "light")
    said: list[str] = []
    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: said.append(f"{message.type}: {message.text}"),
        "pageerror": lambda error: said.append(f"error: {error}"),
        "dialog": lambda dialog: said.append(f"dialog: {dialog.message}"),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield page
        assert said == []
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.evaluate("[localStorage, sessionStorage].forEach(stored => stored.clear())")
        page.goto("about:blank")
        page.mouse.move(0, 0)
    except BaseException:
        context.close()
        raise


@contextmanager
def viewing(browser: Browser, *paths: Path) -> Generator[tuple[Page, str, Library]]:
    """A page, the address of a server over folders, and what it serves."""
    with open_library(*paths) as library, serving(library) as site, quiet_page(browser) as page:
        yield page, site, library
