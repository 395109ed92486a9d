"""Importing is cheap and quiet: nothing heavy comes along, nothing is read, started or configured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROBE = """
import json, logging, sys, threading
before = set(sys.modules)
import {module}
print(json.dumps({{
    "modules": sorted({{name.partition(".")[0] for name in sys.modules}}),
    "handlers": [repr(handler) for handler in logging.getLogger().handlers],
    "threads": threading.active_count(),
}}))
"""


def imported(module: str, cwd: Path) -> dict[str, Any]:
    """What is there after `import module` in a fresh interpreter that was started in `cwd`."""
    argv = [sys.executable, "-W", "error", "-c", PROBE.format(module=module)]
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("gumshoe", {"pydantic", "yaml"}),
        ("gumshoe.cli", {"torch", "datasets", "ray", "docker", "gymnasium", "numpy", "openai", "pydantic"}),
        ("gumshoe.tools", {"torch", "transformers", "datasets", "ray", "docker", "gymnasium", "numpy", "libcst"}),
        ("gumshoe.env", {"torch", "transformers", "datasets", "ray", "pandas", "docker", "openai"}),
        ("gumshoe.collect", {"torch", "transformers", "datasets", "ray", "pandas"}),
        ("gumshoe.eval", {"torch", "transformers", "trl", "ray"}),
        ("gumshoe.train", {"torch", "docker", "gymnasium"}),
    ],
)
def test_an_import_brings_nothing_heavy_and_does_nothing(module: str, banned: set[str], tmp_path: Path):
    seen = imported(module, tmp_path)
    assert banned.isdisjoint(seen["modules"]), sorted(banned.intersection(seen["modules"]))
    assert seen["handlers"] == []
    assert seen["threads"] == 1
    assert list(tmp_path.iterdir()) == []


def test_the_folders_are_not_modules_of_their_own(tmp_path: Path):
    """`import env` must not work for those who install the package: only `gumshoe.env` exists."""
    for name in ("env", "tools", "eval", "collect", "train"):
        argv = [sys.executable, "-P", "-c", f"import {name}"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert "ModuleNotFoundError" in done.stderr, name


def test_an_evaluation_and_its_page_need_no_web_server(tmp_path: Path):
    """`gumshoe eval` and `gumshoe view --static` work without the extra `view`."""
    blocked = "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None; "
    modules = "import gumshoe.eval.commands.eval, gumshoe.eval.evaluate, gumshoe.eval.view.static"
    done = subprocess.run(
        [sys.executable, "-c", blocked + modules], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
