"""What this machine has for builds: its Pythons, and where its pip and uv get packages from."""

from __future__ import annotations

import functools
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from uv import find_uv_bin

from gumshoe.errors import TaskError

OLDEST = (3, 6)
# The days of the first releases of these versions (https://devguide.python.org/versions).
RELEASED = {
    (3, 6): "2016-12-23",
    (3, 7): "2018-06-27",
    (3, 8): "2019-10-14",
    (3, 9): "2020-10-05",
    (3, 10): "2021-10-04",
    (3, 11): "2022-10-24",
    (3, 12): "2023-10-02",
    (3, 13): "2024-10-07",
    (3, 14): "2025-10-07",
}
LISTING_S = 120


@dataclass(frozen=True)
class Interpreter:
    """One Python outside of any virtual environment."""

    path: Path
    version: tuple[int, int, int]

    @property
    def text(self) -> str:
        """The version as `3.11.7`."""
        return ".".join(map(str, self.version))


@functools.cache
def interpreters() -> tuple[Interpreter, ...]:
    """The interpreters that uv finds, one of each minor version, this process's own first, then the newest."""
    own_path = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    own = Interpreter(own_path, (sys.version_info.major, sys.version_info.minor, sys.version_info.micro))
    found = {own.version[:2]: own}
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions", Path("/opt/python")]
    folders = [str(path) for root in roots for path in sorted(root.glob("3*/bin"))]
    argv = [find_uv_bin(), "python", "list", "--no-config", "--only-installed", "--output-format", "json"]
    environment = {**os.environ, "PATH": ":".join([*folders, "/usr/local/bin", "/usr/bin"])}
    listed = subprocess.run(argv, capture_output=True, env=environment, timeout=LISTING_S, check=False)
    for row in json.loads(listed.stdout or "[]"):
        version = tuple(row["version_parts"][part] for part in ("major", "minor", "patch"))
        if row["implementation"] == "cpython" and row["variant"] == "default" and version >= OLDEST:
            found.setdefault(version[:2], Interpreter(Path(row["path"]), version))
    return tuple(sorted(found.values(), key=lambda item: (item != own, [-part for part in item.version])))


def choose_python(requires: str, wanted: str = "", as_of: str = "") -> Interpreter:
    """The first of `interpreters` that `requires` (a specifier) and `wanted` (a version) allow. With `as_of`, a day as
    YYYY-MM-DD, those that were out by then come before all later ones. Raises TaskError.
    """
    try:
        allowed = SpecifierSet(requires)
    except InvalidSpecifier:
        allowed = SpecifierSet()
    out = [one for one in interpreters() if not as_of or RELEASED.get(one.version[:2], as_of + "~") <= as_of]
    for interpreter in [*out, *interpreters()]:
        chosen = not wanted or interpreter.text == wanted or interpreter.text.startswith(f"{wanted}.")
        if chosen and interpreter.text in allowed:
            return interpreter
    there = ", ".join(interpreter.text for interpreter in interpreters())
    asked = " and ".join(
        filter(None, (requires and f"requires-python {requires}", wanted and f"build.python={wanted}"))
    )
    raise TaskError(f"no Python for {asked}: there are {there}")


def this_machine() -> str:
    """System and processor, as a lock names them."""
    return f"{platform.system()}-{platform.machine()}".lower()


HANDED_ON = re.compile(
    r"(?:https?|no|all)_proxy|ssl_cert_(?:file|dir)|requests_ca_bundle"
    r"|UV_(?:DEFAULT_INDEX|EXTRA_INDEX_URL|INDEX\w*|FIND_LINKS|INSECURE_HOST|HTTP_TIMEOUT)",
    re.IGNORECASE,
)
# Where packages come from, as pip is configured, and what uv calls it; everything else that a person may have set does
# not belong in an environment.
KEYS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
FIXED = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    # All indexes count alike, as they do for pip.
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    "UV_LINK_MODE": "copy",
    "UV_NO_CACHE": "1",
    "UV_NO_CONFIG": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}
INDEX_PAGES = "simple"
PIP_S = 60


@dataclass(frozen=True)
class IndexSettings:
    """Where pip and uv get packages from on this machine, in a form that can be handed to a sandbox.

    Attributes:
        environment: variables of the environment for both.
        paths: the local files and folders that these name.
    """

    environment: dict[str, str]
    paths: tuple[str, ...]

    @staticmethod
    @functools.cache
    def of_this_machine() -> IndexSettings:
        """The settings in pip's files and variables, as `pip config list` shows them, and in uv's variables."""
        for_pip: dict[str, str] = {}
        for_uv: dict[str, str] = {}
        for line in _pip_config():
            name, _, value = line.partition("=")
            section, _, key = name.partition(".")
            values = shlex.split(value)
            if key in KEYS and values and section in (":env:", "global", "install", "download"):
                words = values[0].split()
                for_pip[f"PIP_{key.upper().replace('-', '_')}"] = " ".join(words)
                for_uv[KEYS[key]] = ("," if key == "find-links" else " ").join(words)
        variables = {name: value for name, value in os.environ.items() if HANDED_ON.fullmatch(name)}
        environment = {**for_uv, **for_pip, **variables, **FIXED}
        words = [word for value in environment.values() for word in re.split(r"[\s,]+", value)]
        return IndexSettings(environment, tuple(dict.fromkeys(path for word in words if (path := _local(word)))))


def _pip_config() -> list[str]:
    argv = [sys.executable, "-m", "pip", "config", "list"]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=PIP_S, check=False)
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
