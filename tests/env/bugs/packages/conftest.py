"""What tests of harvests share."""

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.build_sandbox import BuildSandbox
from gumshoe.env.bugs.packages.machine import interpreters


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where pip's index does not answer."""
    folder = tmp_path_factory.mktemp("index")
    python = interpreters()[0].path
    sandbox = BuildSandbox({"/downloads": folder}, python, BuildConfig(install_timeout_s=60))
    result = sandbox.run([str(python), "/gumshoe/fetch_sdist.py", "iniconfig", "/downloads"])
    if "file" not in result.output:
        pytest.skip(f"pip's index does not answer: {result.output.strip()[-200:]}")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of a module's tests, and of the harvests that they share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the module's cache used.

    It takes the place of the automatic fixture of this name in `tests/conftest.py`, so every test in this folder gets
    it, whether it asks for it or not.
    """
    monkeypatch.setenv("GUMSHOE_CACHE", str(cache))
