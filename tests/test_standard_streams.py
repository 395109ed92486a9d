"""Commands whose standard input, output or error is closed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_a_sandbox_starts_where_a_standard_stream_is_closed(tmp_path: Path, closed: str) -> None:
    (tmp_path / "test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 3\n")
    words = ["debug", str(tmp_path), "--model", "human", "-p", "sandbox.kind=bubblewrap"]
    argv = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "gumshoe", *words]
    done = subprocess.run(argv, input="quit\n", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130
    assert done.stderr == ("" if "2>&-" in closed else "gumshoe debug: interrupted\n")
