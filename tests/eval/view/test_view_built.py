"""The built front end belongs to its sources, loads nothing from elsewhere, and its lockfile names no host."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from gumshoe.eval.view.static import PAGE, PAGE_FILES

VIEWER = Path(__file__).parents[3] / "viewer"
SOURCES = ("index.html", "package-lock.json", "package.json", "public/icon.svg", "tsconfig.json", "vite.config.ts")


def test_the_built_files_are_those_of_the_sources() -> None:
    """Run `make viewer` after a change of the front end."""
    inner = [path.relative_to(VIEWER).as_posix() for path in (VIEWER / "src").rglob("*") if path.is_file()]
    names = sorted([*SOURCES, *inner])
    digest = hashlib.sha256()
    for name in names:
        digest.update(f"{name}\0".encode() + (VIEWER / name).read_bytes() + b"\0")
    assert (PAGE / "sources.sha256").read_text().strip() == digest.hexdigest()


@pytest.mark.parametrize("name", PAGE_FILES)
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    text = (PAGE / name).read_text(encoding="utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", text))
    assert {address for address in addresses if not address.startswith("http://www.w3.org/")} == set()
    assert "@import" not in text


def test_no_text_becomes_html() -> None:
    """Preact escapes what it shows, as long as nothing goes around it."""
    sources = [path for path in (VIEWER / "src").rglob("*.ts*") if path.is_file()]
    assert len(sources) > 20
    assert [path.name for path in sources if "innerhtml" in path.read_text(encoding="utf-8").lower()] == []


def test_the_page_has_no_code_of_its_own() -> None:
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(.*?)>(.*?)</script>", page) == [(' defer src="./app.js"', "")]
    assert "style=" not in page
    assert "<style" not in page


def test_the_front_end_is_small() -> None:
    assert sum((PAGE / name).stat().st_size for name in PAGE_FILES) < 250_000


def test_the_lockfile_names_no_registry() -> None:
    text = (VIEWER / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in text
    assert '"integrity"' in text
