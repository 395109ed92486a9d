"""The package that goes into sandboxes, in a folder of its own and under the name that it has there."""

import atexit
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gumshoe.env.sandboxes.channel import package_files
from gumshoe.tools.runs.commands import our_program

SUPPORT = Path(tempfile.mkdtemp(prefix="gumshoe-inside-"))
"""What is a sandbox's support folder elsewhere."""
atexit.register(shutil.rmtree, SUPPORT, ignore_errors=True)
for name, text in package_files().items():
    (SUPPORT / name).parent.mkdir(parents=True, exist_ok=True)
    (SUPPORT / name).write_text(text)


def program(name: str) -> list[str]:
    """What follows an interpreter to run one of the package's programs."""
    return our_program(str(SUPPORT), name)


def record(python: str, project: Path, folder: Path, name: str, line: int) -> bytes:
    """What the script writes about a function of shop.py; the deadline is told to it by SIGUSR2."""
    written, request = folder / f"{name}.jsonl", folder / "request.json"
    function = {"path": "shop.py", "line": line, "name": name}
    request.write_text(json.dumps({"function": function, "record": str(written), "deadline_s": 100}))
    argv = [python, *program("runs.trace"), "--", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    env = {**os.environ, "GUMSHOE_TRACE": str(request)}
    subprocess.run(argv, cwd=project, env=env, check=False, capture_output=True, timeout=120)
    return written.read_bytes()
