"""The tutorial of the documentation runs as it is written, with the tiny model of these tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "train" / "run_notebook.py"


@pytest.mark.needs("bubblewrap")
def test_the_tutorial_leads_from_a_repository_to_a_model(root: Path, start: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "TUTORIAL_MODEL": str(start),
        "TUTORIAL_SANDBOX": "bubblewrap",
    }
    work = tmp_path / "work"
    work.mkdir()
    argv = [sys.executable, SCRIPT, root / "docs" / "tutorial.ipynb", tmp_path / "out.ipynb"]
    done = subprocess.run(argv, cwd=work, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (work / "runs" / "model" / "model" / "config.json").is_file()
    said = (tmp_path / "out.ipynb").read_text(encoding="utf-8")
    for words in (
        "FAILED test_cart.py::test_shipping",
        "amount = 50",
        "reward 1.0",
        "resolved: True",
        "tokens trained",
    ):
        assert words in said
