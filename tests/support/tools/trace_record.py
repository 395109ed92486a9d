"""Runs the script behind `trace` on its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from support.tools.inside import program


def record(python: str, project: Path, folder: Path, name: str, line: int) -> bytes:
    """What the script writes about a function of shop.py; the deadline is told to it by SIGUSR2."""
    written, request = folder / f"{name}.jsonl", folder / "request.json"
    function = {"path": "shop.py", "line": line, "name": name}
    request.write_text(json.dumps({"function": function, "record": str(written), "deadline_s": 100}))
    argv = [python, *program("runs.trace"), "--", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    env = {**os.environ, "GUMSHOE_TRACE": str(request)}
    subprocess.run(argv, cwd=project, env=env, check=False, capture_output=True, timeout=120)
    return written.read_bytes()
