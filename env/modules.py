"""Our modules from `env/inside`, in a sandbox where Gumshoe is not installed."""

from __future__ import annotations

from pathlib import Path

from gumshoe.protocols import Sandbox

__all__ = ["command_of", "write_modules"]

PACKAGE = "gumshoe.env.inside"
SOURCES = Path(__file__).resolve().parent / "inside"
# Our modules leave the module table again, so that a project may import whatever it likes.
START = """\
import sys
sys.path.insert(0, sys.argv[1])
from {module} import main
sys.path.pop(0)
for name in [name for name in sys.modules if name.split(".")[0] == "gumshoe"]:
    del sys.modules[name]
main()
"""


def write_modules(sandbox: Sandbox, folder: str, modules: tuple[str, ...]) -> None:
    """Writes modules to a folder of the sandbox, as the package that they import each other from. Raises OSError."""
    parts = PACKAGE.split(".")
    for depth in range(1, len(parts) + 1):
        sandbox.write_file("/".join([folder, *parts[:depth], "__init__.py"]), b"", inside=False)
    for name in modules:
        data = (SOURCES / f"{name}.py").read_bytes()
        sandbox.write_file("/".join([folder, *parts, f"{name}.py"]), data, inside=False)


def command_of(python: str, module: str, folder: str) -> list[str]:
    """The command that runs `main` of a module that was written to the folder."""
    return [python, "-c", START.format(module=f"{PACKAGE}.{module}"), folder]
