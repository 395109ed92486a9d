"""The viewer behind a real server, and real headless Chromium in front of it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from evaluation_samples import write_everything
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from gumshoe.eval.view.gold_patches import GoldPatches
from gumshoe.eval.view.guard import is_loopback
from gumshoe.eval.view.index import Index
from gumshoe.eval.view.library import Library
from gumshoe.eval.view.masks import Masks
from gumshoe.eval.view.server import ViewerServer, make_app
from gumshoe.eval.view.watch import Watcher

PATIENCE_MS = 180_000
"""How long anything may take: much, as a busy machine is no mistake of the page. What is right is seen at once."""
expect.set_options(timeout=PATIENCE_MS)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def all_rows(library: Library) -> list[dict[str, Any]]:
    """Every row of the list, those in flight in front."""
    answer = library.rows("", 0)
    return [*answer["live"], *answer["rows"]]


@contextmanager
def open_library(*paths: Path, cache: Path, model: Path | None = None) -> Generator[Library]:
    """A library over folders, its index up to date."""
    masks = Masks(model) if model is not None else None
    with Index(paths, cache) as index:
        watcher = Watcher(paths, index, every_s=0.1)
        watcher.look()
        try:
            yield Library(watcher, index, GoldPatches(), masks)
        finally:
            watcher.close()
            if masks is not None:
                masks.close()


@contextmanager
def serving(library: Library, *, host: str = "127.0.0.1", token: str | None = None) -> Generator[str]:
    """The library behind a server; gives its address without the last slash."""
    app = make_app(library, loopback=is_loopback(host) and token is None, token=token)
    listening = ViewerServer(app, host, 0)
    thread = threading.Thread(target=listening.serve, daemon=True)
    library.watcher.start()
    thread.start()
    try:
        yield listening.url.rstrip("/")
    finally:
        listening.stop()
        thread.join()


def get(address: str, **options: Any) -> httpx2.Response:
    """What the server answers, however busy the machine is."""
    return httpx2.get(address, timeout=PATIENCE_MS / 1000, **options)


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_everything(tmp_path_factory.mktemp("viewed") / "demo")


@pytest.fixture(scope="session")
def library(everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with open_library(everything, cache=tmp_path_factory.mktemp("cache")) as library:
        yield library


@pytest.fixture(scope="session")
def site(library: Library) -> Iterator[str]:
    with serving(library) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield browser
        browser.close()


@contextmanager
def quiet_page(browser: Browser, *, width: int = 1280, height: int = 800, dark: bool = False) -> Generator[Page]:
    """A page that says nothing on its console: no error, no warning, nothing refused by the content policy."""
    context: BrowserContext = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    said: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        said.append(f"{message.type}: {message.text}")

    page.on("console", heard)
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
    try:
        yield page
    finally:
        context.close()
    assert said == []


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with quiet_page(browser) as page:
        yield page
