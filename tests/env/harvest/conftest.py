"""What tests of harvests share."""

from __future__ import annotations

import pytest

from gumshoe.env.harvest.build_sandbox import BuildSandbox
from gumshoe.env.harvest.config import BuildConfig
from gumshoe.env.harvest.pythons import interpreters


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skips where pip's index does not answer."""
    folder = tmp_path_factory.mktemp("index")
    sandbox = BuildSandbox({"/downloads": folder}, interpreters()[0].path, BuildConfig())
    argv = [str(interpreters()[0].path), "/gumshoe/fetch_sdist.py", "iniconfig", "/downloads"]
    result = sandbox.run(argv, timeout=60, limit="the test's")
    if "file" not in result.output:
        pytest.skip(f"pip's index does not answer: {result.output.strip()[-200:]}")
