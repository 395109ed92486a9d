"""Starting the warden in a fresh interpreter at the other end of a terminal.

The interpreter is started with `-c` and a small program that makes its terminal raw, prints a word to say so, reads
the warden's sources from the terminal and runs them. So nothing has to be copied or mounted beforehand.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path

__all__ = ["bootstrap_argv", "launcher_program", "payload"]

PACKAGE = "gumshoe.env.inside"
LAUNCHER_MODULES = ("system", "disk", "processes", "supervisor", "launcher")
MODULES = (
    *LAUNCHER_MODULES,
    "jobs",
    "test_server",
    "programs",
    "buffers",
    "messages",
    "running",
    "files",
    "searching",
    "sessions",
    "contents",
    "snapshots",
    "state",
    "tampering",
    "terminal",
    "warden",
    "serving",
)

PROGRAM = """\
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv[1].encode() + b"\\n")
data = b""
while len(data) < int(sys.argv[2]):
    data += os.read(0, int(sys.argv[2]) - len(data)) or sys.exit("the host went away")
exec(data.decode("ascii"))
"""

LOADER = """
import sys, types
for name, source, path in sources:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    exec(compile(source, path, "exec"), module.__dict__)
"""


def bootstrap_argv(python: str, word: str) -> list[str]:
    """The command line that waits for `payload()`; it prints `word` when it is ready for it."""
    return [python, "-I", "-S", "-c", PROGRAM, word, str(len(payload()))]


@functools.cache
def payload() -> bytes:
    """The warden's sources and the few lines that load them, as Python code in ASCII."""
    call = f"sys.modules['{PACKAGE}'].serving.serve(0, 1, {json.dumps(launcher_program())})\n"
    return (_program(MODULES) + call).encode("ascii")


@functools.cache
def launcher_program() -> str:
    """The same for the modules of the launcher, which the warden starts."""
    return _program(LAUNCHER_MODULES)


def _program(names: Sequence[str]) -> str:
    parts = PACKAGE.split(".")
    modules = [(".".join(parts[: depth + 1]), "", "<gumshoe>") for depth in range(len(parts))]
    folder = Path(__file__).parent.parent / "inside"
    for name in names:
        path = folder / f"{name}.py"
        modules.append((f"{PACKAGE}.{name}", path.read_text(encoding="utf-8"), str(path)))
    return f"sources = {json.dumps(modules)}\n{LOADER}"
