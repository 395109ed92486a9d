"""The environment that a package's tests need, built in a real sandbox with pip's real index."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.bugs.candidates import bug_of, candidates
from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.environment import Built, build_environment
from gumshoe.env.bugs.projects import Suite
from gumshoe.env.bugs.verify import ProjectVerifier
from gumshoe.env.config import SandboxConfig

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("index")]
CODE = "def double(x):\n    return 2 * x\n\n\ndef lowest(x, y):\n    return min(x, y)\n"
TESTS = """\
from shop import double, lowest


def test_double():
    assert double(3) == 6


def test_lowest():
    assert lowest(3, 2) == 2
"""


def build(tmp_path: Path, requirements: str) -> Built:
    """A project whose tests have these requirements, with its environment."""
    source = tmp_path / "shop"
    source.mkdir()
    (source / "shop.py").write_text(CODE)
    (source / "test_shop.py").write_text(TESTS)
    (source / "requirements-test.txt").write_text(requirements)
    return build_environment(source, tmp_path / "project", BuildConfig(python="3.11"), lambda text: None)


def test_a_pinned_pytest_that_is_too_old_for_the_python_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    built = build(tmp_path, "pytest==4.6.11\n")
    version = next(package for package in built.lock.packages if package.startswith("pytest=="))
    assert int(version.partition("==")[2].split(".")[0]) >= 7


def test_bugs_are_judged_by_an_older_pytest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    built = build(tmp_path, "pytest==7.4.4\npluggy==1.2.0\n")
    assert {"pytest==7.4.4", "pluggy==1.2.0"} <= set(built.lock.packages)
    suite = Suite(built.lock.name)
    verifier = ProjectVerifier("shop", tmp_path / "project", SandboxConfig(kind="bubblewrap"), suite=suite)
    try:
        verdicts = verifier.verify([bug_of(one) for one in candidates(CODE, 0, path="shop.py")])
    finally:
        verifier.close()
    statuses = {verdict.status for verdict in verdicts}
    assert "killed" in statuses
    assert statuses <= {"killed", "survived"}
