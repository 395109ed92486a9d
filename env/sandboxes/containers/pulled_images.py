"""The images that Gumshoe pulled itself, and making room for the next one.

They are remembered in `images.jsonl` in the cache folder, one line per image with its last use, for all processes and
engines of this machine. Where `sandbox.images_gb` is set, those used least recently are removed before a pull. Never
removed are images that the user brought (including one built or pulled again under a name that Gumshoe had pulled),
images that a container uses, and images that were asked for within the last two minutes.

What it does not do: sizes are the engine's, so layers that images share count more than once; and an image that is
the base of others gives up only its name.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from docker.errors import APIError, ImageNotFound
from pydantic import BaseModel, ConfigDict

from gumshoe.errors import SandboxError
from gumshoe.storage import cache_folder, in_turn, read_records, write_jsonl

__all__ = ["PulledImage", "image_id", "make_room", "note_use", "pulled_images", "record_pull", "remove_nameless"]

log = logging.getLogger(__name__)

RECENT_S, NOTE_S = 120.0, 30.0

_Key = tuple[str, str]
_noted: dict[_Key, float] = {}
_arriving: dict[_Key, int] = {}


class PulledImage(BaseModel):
    """An image that Gumshoe pulled.

    Attributes:
        engine: the address of the engine that has it.
        names: all that it got; the first is the one it is used by, another may be the mirror's.
        id: the digest of its content when it was pulled.
        size: bytes on the engine's disk.
        used: seconds since 1970.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    engine: str
    names: tuple[str, ...]
    id: str
    size: int
    used: float

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from others."""
        return self.engine, self.names[0]


def pulled_images(engine: str) -> list[PulledImage]:
    """What is remembered for the engine at this address. Raises SandboxError for a damaged file."""
    return [entry for entry in _read() if entry.engine == engine]


def image_id(client: Any, name: str) -> str | None:
    """The digest of the image that has this name; None where none has it."""
    try:
        return client.images.get(name).id
    except ImageNotFound:
        return None


def record_pull(engine: str, names: tuple[str, ...], digest: str, size: int, before: str | None) -> bool:
    """Remembers an image that was just pulled, unless the user had one of that name; returns whether it is ours.

    Args:
        names: those that the pull gave it, first the one it is used by.
        before: the id of the image that had the name before the pull.
    """
    pulled = PulledImage(engine=engine, names=names, id=digest, size=size, used=time.time())
    try:
        with _changing() as entries:
            known = entries.get(pulled.key)
            if known is not None and known.id == before:
                entries[pulled.key] = pulled.model_copy(update={"names": tuple(dict.fromkeys(names + known.names))})
            elif before is None:
                entries[pulled.key] = pulled
            return pulled.key in entries
    except OSError as error:  # The image is here; it will be taken for the user's.
        log.warning("%s cannot be remembered as pulled: %s", names[0], error)
        return False


def remove_nameless(client: Any, digest: str) -> None:
    """Removes an image whose names another one has taken, unless a container uses it."""
    with contextlib.suppress(APIError):
        if not client.images.get(digest).tags:
            client.images.remove(digest)


def note_use(engine: str, image: str) -> None:
    """Notes that the image is used now, if Gumshoe pulled it; at most once every half minute."""
    key = (engine, image)
    if time.monotonic() - _noted.get(key, -NOTE_S) < NOTE_S or not _file().exists():
        return
    with contextlib.suppress(OSError), _changing() as entries:
        if key in entries:
            entries[key] = entries[key].model_copy(update={"used": time.time()})
    _noted[key] = time.monotonic()


@contextlib.contextmanager
def make_room(
    client: Any, engine: str, image: str, budget_gb: float | None, measure: Callable[[], int]
) -> Generator[None]:
    """Removes images until the next one fits into the budget, and counts it while it is being pulled.

    Args:
        client: a connection to the engine.
        engine: its address.
        image: what is going to be pulled.
        budget_gb: None removes nothing.
        measure: the bytes that the new image takes; called only where there is a budget.
    """
    key = (engine, image)
    try:
        if budget_gb is not None:
            _arriving[key] = measure()
            with _changing() as entries:
                _remove_least_recent(client, engine, entries, int(budget_gb * 1e9))
        yield
    finally:
        _arriving.pop(key, None)


def _remove_least_recent(client: Any, engine: str, entries: dict[_Key, PulledImage], budget: int) -> None:
    for key, entry in list(entries.items()):
        if entry.engine == engine and image_id(client, entry.names[0]) != entry.id:
            del entries[key]
    ours = sorted((entry for entry in entries.values() if entry.engine == engine), key=lambda entry: entry.used)
    occupied = sum(entry.size for entry in ours) + sum(
        size for (at, _), size in list(_arriving.items()) if at == engine
    )
    in_containers = {str(container.get("ImageID")) for container in client.api.containers(all=True)}
    for entry in ours:
        if occupied <= budget:
            return
        if entry.id in in_containers or time.time() - entry.used < RECENT_S:
            continue
        try:
            for name in reversed(entry.names):  # The one that it is used by goes last.
                if image_id(client, name) == entry.id:
                    client.images.remove(name)
        except APIError as error:  # A container was made from it meanwhile.
            log.debug("%s stays: %s", entry.names[0], error)
            continue
        log.info("removed image %s to make room", entry.names[0])
        occupied -= entry.size
        del entries[entry.key]
    if occupied > budget:
        log.warning("images take %.1f GB, more than sandbox.images_gb: the rest is in use", occupied / 1e9)


@contextlib.contextmanager
def _changing() -> Generator[dict[_Key, PulledImage]]:
    """All entries, to be changed by one thread of one process at a time; written when the block ends. OSError: the
    cache folder cannot be written.
    """
    cache_folder().mkdir(parents=True, exist_ok=True)
    with in_turn(cache_folder()):
        before = {entry.key: entry for entry in _read()}
        entries = dict(before)
        try:
            yield entries
        finally:  # What has been removed is gone, even if the next step fails.
            if entries != before:
                write_jsonl(_file(), entries.values())


def _file() -> Path:
    return cache_folder() / "images.jsonl"


def _read() -> list[PulledImage]:
    return list(read_records(_file(), PulledImage, error=SandboxError)) if _file().exists() else []
