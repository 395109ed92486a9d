"""Starting the warden in a fresh interpreter at the other end of a terminal.

The interpreter is started with `-c` and a small program that makes its terminal raw, prints a word to say so, reads
the package `env/inside` from the terminal and runs the warden in it. So nothing has to be copied or mounted beforehand,
and this is all that is ever sent: the warden puts the package on the sandbox's disk.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

from gumshoe.env.inside.loading import PACKAGE, READ

__all__ = ["bootstrap_argv", "package_files", "payload"]

START = """\
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv.pop(1).encode() + b"\\n")
"""
SERVE = f"""\
from {PACKAGE}.warden.serving import serve
serve(0, 1, files)
"""


def bootstrap_argv(python: str, word: str) -> list[str]:
    """The command line that waits for `payload()`; it prints `word` when it is ready for it."""
    return [python, "-I", "-S", "-c", START + READ + SERVE, word, str(len(payload()))]


@functools.cache
def payload() -> bytes:
    """The package as JSON in ASCII."""
    return json.dumps(package_files()).encode("ascii")


@functools.cache
def package_files() -> dict[str, str]:
    """The texts of `env/inside`, by their paths in a sandbox's support folder."""
    folder = Path(__file__).parent.parent / "inside"
    paths = sorted(folder.rglob("*.py"))
    return {f"{PACKAGE}/{path.relative_to(folder).as_posix()}": path.read_text(encoding="ascii") for path in paths}
