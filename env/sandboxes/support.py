"""The modules of ours that are injected into sandboxes: the debugger, the pytest plugin."""

from __future__ import annotations

import functools
import io
import tarfile
from pathlib import Path

__all__ = ["support_archive", "support_modules"]


@functools.cache
def support_modules() -> dict[str, bytes]:
    """The modules' sources by file name."""
    folder = Path(__file__).parent.parent.parent / "tools" / "inside"
    return {path.name: path.read_bytes() for path in sorted(folder.glob("gumshoe_*.py"))}


@functools.cache
def support_archive() -> bytes:
    """The modules as a tar archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in support_modules().items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
