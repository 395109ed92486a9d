"""What an evaluation needs of this machine and of servers, checked before anything runs; all faults are reported at
once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.records import Oracle, Task

__all__ = ["Checks", "Endpoint", "check_disk", "check_endpoint", "count_lines"]

BASE_KB = 100 << 10
EPISODE_KB = 512
"""Disk space for the trajectory, grades and page of an episode; most take less."""
TIMEOUT_S = 5.0
REFUSED = (401, 403)


@dataclass(frozen=True)
class Endpoint:
    """A server: an address that is cheap to request, and the headers that say who is asking."""

    owner: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Checks:
    """The faults that the parts of an evaluation find in themselves.

    Each line of a message is a fault of its own; the same line counts once.
    """

    def __init__(self) -> None:
        self._errors: list[GumshoeError] = []
        self._asked: set[str] = set()

    @contextmanager
    def collect(self) -> Generator[None]:
        """Keeps a GumshoeError for later and goes on after the block."""
        try:
            yield
        except GumshoeError as error:
            self._errors.append(error)

    def endpoint(self, endpoint: Endpoint) -> None:
        """Checks a server, unless it was checked before."""
        if endpoint.url not in self._asked:
            self._asked.add(endpoint.url)
            with self.collect():
                check_endpoint(endpoint)

    def sandboxes(self, tasks: Sequence[tuple[Task, Oracle]], config: SandboxConfig) -> None:
        """Checks that every image can be obtained and that a sandbox takes the tasks."""
        seen: set[tuple[str | None, str | None, bool]] = set()
        for task, _ in tasks:
            kind = (task.workspace.image, task.workspace.environment, is_built_in(task))
            if kind not in seen:
                seen.add(kind)
                with self.collect():
                    choose(task, config, trusted=True)

    def report(self) -> None:
        """Raises what was collected, if anything: a single fault as it is, several as one ConfigError."""
        lines = list(dict.fromkeys(line for error in self._errors for line in str(error).splitlines()))
        if len(lines) > 1:
            listed = "".join(f"\n  {line}" for line in lines)
            raise ConfigError(f"{len(lines)} problems, so nothing was run:{listed}")
        if lines:
            raise self._errors[0]


def check_endpoint(endpoint: Endpoint) -> None:
    """Raises ConfigError if nothing answers, or the key is refused. Any other answer will do: not all list models."""
    import httpx2

    shown = _without_password(endpoint.url)
    try:
        status = httpx2.get(endpoint.url, headers=dict(endpoint.headers), timeout=TIMEOUT_S).status_code
    except httpx2.TimeoutException:
        raise ConfigError(f"{endpoint.owner}: {shown} did not answer in {TIMEOUT_S:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(f"{endpoint.owner}: {shown} does not answer: {' '.join(str(error).split())}") from None
    if endpoint.headers and status in REFUSED:
        raise ConfigError(f"{endpoint.owner}: {shown} rejects the key (HTTP {status})")


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def check_disk(out: Path, episodes: int) -> None:
    """Raises ConfigError if the folder cannot be written, or its disk has no room for the episodes."""
    place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise ConfigError(f"the folder {out} cannot be created: {place} is a file")
    if not os.access(place, os.W_OK):
        raise ConfigError(f"the folder {out} cannot be created: {place} is not writable")
    free, wanted = shutil.disk_usage(place).free >> 20, (BASE_KB + EPISODE_KB * episodes) >> 10
    if free < wanted:
        raise ConfigError(f"the disk of {out} has {free} MB free; {episodes} episodes may take {wanted} MB")


def count_lines(path: Path) -> int:
    """How many records a JSON-lines file holds; 0 if there is no such file."""
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except (FileNotFoundError, NotADirectoryError):
        return 0
