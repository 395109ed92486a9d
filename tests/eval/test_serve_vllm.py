"""vLLM itself, from an environment of its own.

`.ci/vllm.sh FOLDER` makes it, and GUMSHOE_VLLM_PYTHON names its interpreter.

With GUMSHOE_REQUIRE_VLLM=1 it may not be missing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PYTHON = os.environ.get("GUMSHOE_VLLM_PYTHON", "")
REQUIRED = os.environ.get("GUMSHOE_REQUIRE_VLLM") == "1"


@pytest.mark.skipif(not PYTHON and not REQUIRED, reason="GUMSHOE_VLLM_PYTHON names no environment with vLLM")
@pytest.mark.timeout(900)
def test_vllm_serves_a_model_as_it_was_trained(micro_model: Path, tmp_path: Path) -> None:
    """One start serves every item: calls that it reads itself, and every conversation token by token."""
    assert PYTHON, "GUMSHOE_REQUIRE_VLLM=1, but GUMSHOE_VLLM_PYTHON names no interpreter: .ci/vllm.sh FOLDER makes one"
    command = [sys.executable, "-m", "gumshoe", "serve", str(micro_model), "--python", PYTHON, "--backend", "vllm"]
    command += ["--port", "0", "--check", "--ask", "good", "--log", str(tmp_path / "log"), "-p", "max_length=4096"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "vllm.entrypoints.openai.api_server" in done.stdout, done.stderr
    columns = [re.split(r"\s{2,}", line, maxsplit=2) for line in done.stdout.splitlines()[4:-1]]
    items = {item: status for status, item, *_ in columns}
    for item in ("native calls", "streaming"):
        assert items[item] == "ok", done.stdout
    renderings = [item for item in items if " as trained, syntax " in item]
    assert len(renderings) == 4
    assert {items[item] for item in renderings} == {"ok"}, done.stdout
    assert done.stdout.count("token by token") == 4
