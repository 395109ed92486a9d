"""What pip is configured with on this machine, in a form that can be handed to a sandbox."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

__all__ = ["PipSettings"]

HANDED_ON = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "ssl_cert_file",
    "ssl_cert_dir",
    "requests_ca_bundle",
)
# Where packages come from; everything else that a person may have set does not belong in an environment.
KEYS = ("index-url", "extra-index-url", "find-links", "cert", "trusted-host", "proxy", "timeout", "default-timeout")
INDEX_PAGES = "simple"
TIMEOUT_S = 60


@dataclass(frozen=True)
class PipSettings:
    """Variables of the environment, and the local files and folders that they name."""

    environment: dict[str, str]
    paths: tuple[str, ...]

    @staticmethod
    @functools.cache
    def of_this_machine() -> PipSettings:
        """The settings in pip's files and variables, as `pip config list` shows them."""
        settings: dict[str, str] = {}
        for line in _listed():
            name, _, value = line.partition("=")
            section, _, key = name.partition(".")
            values = shlex.split(value)
            if key in KEYS and values and section in (":env:", "global", "install", "download"):
                settings[f"PIP_{key.upper().replace('-', '_')}"] = " ".join(values[0].split())
        variables = {name: value for name, value in os.environ.items() if name.lower() in HANDED_ON}
        environment = {**variables, **settings, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
        words = [word for value in environment.values() for word in value.split()]
        return PipSettings(environment, tuple(dict.fromkeys(path for word in words if (path := _local(word)))))


def _listed() -> list[str]:
    argv = [sys.executable, "-m", "pip", "config", "list"]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return result.stdout.splitlines() if result.returncode == 0 else []


def _local(word: str) -> str | None:
    """The folder or file of this machine that a word names, if it names one."""
    path = url2pathname(urlsplit(word).path) if word.startswith("file:") else word
    if not path.startswith("/") or not Path(path).exists():
        return None
    # The pages of a local index lead to files beside it.
    return str(Path(path).parent) if Path(path).name == INDEX_PAGES else path
