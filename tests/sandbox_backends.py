"""The backends that the tests of sandboxes go through."""

from __future__ import annotations

import pytest

__all__ = ["BACKENDS", "ISOLATED"]

BACKENDS = [
    pytest.param("docker", marks=pytest.mark.needs("docker")),
    pytest.param("podman", marks=pytest.mark.needs("podman")),
    pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
    "local",
]
ISOLATED = BACKENDS[:3]
