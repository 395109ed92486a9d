"""The kinds of sandboxes, in a module that a command line can import quickly."""

from __future__ import annotations

from typing import Literal, get_args

__all__ = ["SANDBOX_KINDS", "SandboxKind"]

SandboxKind = Literal["auto", "docker", "podman", "bubblewrap", "local"]
SANDBOX_KINDS: tuple[SandboxKind, ...] = get_args(SandboxKind)
