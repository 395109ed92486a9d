"""What the images of SWE-bench and of the sets that follow it share: the repository in /testbed, its environment."""

from __future__ import annotations

import hashlib

from gumshoe.env.diff import parse_patch

__all__ = ["ACTIVATE", "PYTEST", "ROOT", "apply_command", "script", "test_files", "test_targets"]

ROOT = "/testbed"
# The environment `testbed` where there is one, else what conda activates by itself, else what the image sets.
ACTIVATE = """\
if [ -f /opt/miniconda3/bin/activate ]; then
  source /opt/miniconda3/bin/activate
  if [ -d /opt/miniconda3/envs/testbed ]; then conda activate testbed; fi
fi
"""
PYTEST = ("python", "-m", "pytest", "-q")


def script(*lines: str) -> tuple[str, ...]:
    """A setup command of several lines that ends at the first one that fails."""
    return ("bash", "-ec", "\n".join(lines))


def apply_command(patch: str) -> str:
    """A script line that applies a patch, which it contains."""
    end = f"END_{hashlib.sha256(patch.encode()).hexdigest()[:16]}"
    text = patch if patch.endswith("\n") else f"{patch}\n"
    return f"git -c safe.directory='*' apply --whitespace=nowarn - <<'{end}'\n{text}{end}"


def test_targets(patch: str) -> list[str]:
    """The files that a test patch touches and that are in the repository once it is applied."""
    return list(dict.fromkeys(file.target for file in parse_patch(patch) if file.target is not None))


def test_files(patch: str) -> list[str]:
    """Those of the `test_targets` that can be run."""
    return [path for path in test_targets(patch) if path.endswith(".py")]
