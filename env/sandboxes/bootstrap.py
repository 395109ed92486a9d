"""Starting the warden in a fresh interpreter at the other end of a terminal.

The interpreter is started with `-c` and a small program that makes its terminal raw, prints a word to say so, reads
the warden's sources from the terminal and runs them. So nothing has to be copied or mounted beforehand.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

__all__ = ["bootstrap_argv", "payload"]

PACKAGE = "gumshoe.env.inside"
MODULES = ("system", "tape", "processes", "running", "files", "searching", "sessions", "snapshots", "warden")

PROGRAM = """\
import os, sys, tty
word, size = sys.argv[1:3]
tty.setraw(0)
os.write(1, word.encode() + b"\\n")
data = b""
while len(data) < int(size):
    data += os.read(0, int(size) - len(data)) or sys.exit("the host went away")
import json, types
sources = json.loads(data.decode("ascii"))
def make(name, source, path):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    exec(compile(source, path, "exec"), module.__dict__)
for name, source, path in sources:
    make(name, source, path)
sys.modules["gumshoe.env.inside.warden"].serve(0, 1)
"""


def bootstrap_argv(python: str, word: str) -> list[str]:
    """The command line that waits for `payload()`; it prints `word` when it is ready for it."""
    return [python, "-I", "-S", "-c", PROGRAM, word, str(len(payload()))]


@functools.cache
def payload() -> bytes:
    """The warden's sources, as the program above reads them."""
    parts = PACKAGE.split(".")
    modules = [(".".join(parts[: depth + 1]), "", "<gumshoe>") for depth in range(len(parts))]
    folder = Path(__file__).parent.parent / "inside"
    for name in MODULES:
        path = folder / f"{name}.py"
        modules.append((f"{PACKAGE}.{name}", path.read_text(encoding="utf-8"), str(path)))
    return json.dumps(modules).encode("ascii")
