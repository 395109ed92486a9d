"""The environment that a package's tests need, built in a real sandbox with pip's real index."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.harvest.config import BuildConfig
from gumshoe.env.harvest.environment import build_environment

pytestmark = pytest.mark.needs("bubblewrap")


def test_a_pinned_pytest_that_is_too_old_for_the_python_is_replaced(
    index: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del index
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "shop"
    source.mkdir()
    (source / "shop.py").write_text("def double(x):\n    return 2 * x\n")
    (source / "test_shop.py").write_text("from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n")
    (source / "requirements-test.txt").write_text("pytest==4.6.11\n")
    built = build_environment(source, tmp_path / "project", BuildConfig(python="3.11"), lambda text: None)
    version = next(package for package in built.lock.packages if package.startswith("pytest=="))
    assert int(version.partition("==")[2].split(".")[0]) >= 7
