"""The viewer behind a real server, and real headless Chromium in front of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from gumshoe.eval.view.library import Library
from support.eval.view_samples import write_everything
from support.eval.viewer import open_library, quiet_page, serving

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_everything(tmp_path_factory.mktemp("viewed") / "demo")


@pytest.fixture(scope="session")
def library(everything: Path) -> Iterator[Library]:
    with open_library(everything) as library:
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
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with quiet_page(browser) as page:
        yield page
