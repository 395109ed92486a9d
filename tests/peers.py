"""Packages of peers whose dependencies cannot stand beside ours: their code alone, in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["install"]

ROOT = Path(__file__).parent.parent


def install(folder: Path, *packages: str) -> Path:
    """Installs packages without what they depend on, at the versions in peers.txt; gives the folder back.

    Their supported Pythons are not looked at: what a test imports of them has to run on ours.
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    pins = dict(
        line.split("==")
        for line in (ROOT / "tests" / "peers.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    wanted = [f"{package}=={pins[package]}" for package in packages]
    options = ["--no-deps", "--ignore-requires-python", "--target", str(folder)]
    subprocess.run([*pip, *options, *wanted], check=True, capture_output=True, text=True)
    return folder
