"""The interpreters of this machine, and environments of a task that have one of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from gumshoe.env.virtualenvs import RECORD, environment_folder

__all__ = ["FOUND", "make_environment"]

FOUND = [
    *sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python3")),
    *(Path(path) for path in os.environ.get("GUMSHOE_TEST_PYTHONS", "").split(os.pathsep) if path),
]


def make_environment(python: Path, key: str) -> tuple[int, int]:
    """Makes the environment `key` in the cache, with this interpreter and no packages. Returns its version."""
    version = json.loads(
        subprocess.check_output([python, "-c", "import sys, json; print(json.dumps(sys.version_info[:2]))"])
    )
    folder = environment_folder(key)
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "root"], check=True)
    (folder / RECORD).write_text(json.dumps({"python": str(python), "version": version, "lock": {"variables": {}}}))
    return version[0], version[1]
