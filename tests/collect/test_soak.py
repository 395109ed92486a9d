"""The soak in its small form: killed and resumed, nothing is lost, doubled or left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.needs("bubblewrap")
def test_a_small_soak_holds(root: Path, tmp_path: Path) -> None:
    sizes = ["--episodes", "4", "--workers", "2", "--kills", "1", "--hostile", "0.5"]
    argv = [sys.executable, "-m", "benchmarks.soak.soak", "--folder", str(tmp_path / "soak"), *sizes]
    argv += ["--sandbox", "bubblewrap"]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads((tmp_path / "soak" / "result.json").read_text(encoding="utf-8"))
    assert (facts["trajectories"], facts["kills"], facts["lost"], facts["twice"]) == (4, 1, 0, 0)
    assert facts["hostile"] == 2
    assert facts["processes left"] == facts["temporary files left"] == []
