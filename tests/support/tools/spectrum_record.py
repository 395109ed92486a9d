"""Runs the script behind `suspects` on its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from support.tools.inside import program


def spectrum_of(python: str, project: Path, module: str) -> Any:
    """What the script writes of the tests of a module."""
    request = project / "request.json"
    request.write_text(json.dumps({"record": str(project / "lines.json")}))
    argv = [python, *program("runs.suspects"), "--", "-m", "unittest", module]
    environment = {**os.environ, "GUMSHOE_SUSPECTS": str(request)}
    subprocess.run(argv, cwd=project, env=environment, check=False, capture_output=True, timeout=240)
    return json.loads((project / "lines.json").read_text())
