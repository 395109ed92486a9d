"""The package that goes into sandboxes, in a folder of its own and under the name that it has there."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from gumshoe.env.sandboxes.channel import package_files
from gumshoe.tools.runs.interpreters import our_program

__all__ = ["SUPPORT", "program"]

SUPPORT = Path(tempfile.mkdtemp(prefix="gumshoe-inside-"))
"""What is a sandbox's support folder elsewhere."""
atexit.register(shutil.rmtree, SUPPORT, ignore_errors=True)
for name, text in package_files().items():
    (SUPPORT / name).parent.mkdir(parents=True, exist_ok=True)
    (SUPPORT / name).write_text(text)


def program(name: str) -> list[str]:
    """What follows an interpreter to run one of the package's programs."""
    return our_program(str(SUPPORT), name)
