"""Pulling container images: those of tasks, and `sandbox.image`, before a sandbox is made from them.

An image is pulled once, however many threads ask for it, and `sandbox.pulls_at_once` images are pulled at a time. A
mirror is a prefix of the name: the image is pulled from there and then gets its own name too, so tasks keep theirs.
Progress goes to stderr, about one line a second. A pull that failed is not tried again for a minute.

How many bytes an image takes is read from the registry's manifest (OCI and Docker's version 2) before it is pulled.
"""

from __future__ import annotations

import contextlib
import functools
import platform
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any

import requests
from docker.auth import resolve_repository_name
from docker.errors import DockerException
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException
from requests.utils import parse_dict_header

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.containers.engine import (
    Engine,
    connect,
    describe_error,
    forget_found_images,
    image_is_missing,
)
from gumshoe.env.sandboxes.containers.pulled_images import image_id, make_room, note_use, record_pull, remove_nameless
from gumshoe.errors import GumshoeError, SandboxError, TaskError
from gumshoe.storage import parse_json

__all__ = ["compressed_size", "is_pullable", "provide_image", "pull_error", "source_of"]

LINE_S, RETRY_S = 1.0, 60.0
DEFAULT_IMAGE = SandboxConfig().image
DOCKER_HUB = re.compile(r"^(index\.)?docker\.io/")
# What engines say, most specific first: the pattern, how we put it, and whether the image's name is at fault.
REASONS = tuple(
    (re.compile(pattern, re.IGNORECASE), text, wrong_name)
    for pattern, text, wrong_name in (
        (r"no space left|disk quota", "the engine's disk is full", False),
        (r"toomanyrequests|rate limit", "the registry allows no more pulls for now", False),
        (r"pull access denied|may require .{0,2}docker login", "it does not exist, or you have to log in", True),
        (r"unauthorized|denied|basic auth|authentication required|forbidden", "the registry refuses access", False),
        (r"manifest unknown|name unknown|manifest .* not found", "the registry has no such image", True),
        (r"invalid reference|invalid format|repository name must", "this is not the name of an image", True),
        (
            r"dial tcp|no such host|refused|timeout|timed out|deadline|unreachable|tls|x509|\beof\b|reset by|pinging",
            "the registry cannot be reached",
            False,
        ),
    )
)

_lock = threading.Lock()
_image_locks: dict[tuple[str, str], threading.Lock] = {}
_up_to_date: set[tuple[str, str]] = set()
_failed: dict[tuple[str, str], tuple[float, GumshoeError]] = {}


def is_pullable(image: str, config: SandboxConfig) -> bool:
    """Whether this image may be pulled. The default image is built here: only a mirror could have it."""
    return config.pull != "never" and (image != DEFAULT_IMAGE or config.mirror is not None)


def source_of(image: str, mirror: str | None) -> str:
    """The name that an image is pulled by. One that is named by a digest cannot be renamed: it needs no mirror."""
    if mirror is None or "@" in image or image.startswith(f"{mirror}/"):
        return image
    return f"{mirror}/{DOCKER_HUB.sub('', image)}"


def provide_image(image: str, engine: Engine, config: SandboxConfig) -> None:
    """Pulls the image where the config wants that, and notes that it is used.

    Raises:
        TaskError: there is no such image.
        SandboxError: the registry refuses or cannot be reached, the disk is full, or the engine fails.
    """
    key = (engine.address, image)
    with _lock:
        image_lock = _image_locks.setdefault(key, threading.Lock())
    with image_lock:
        outdated = config.pull == "always" and key not in _up_to_date
        if is_pullable(image, config) and (outdated or image_is_missing(image, engine)):
            _pull_or_fail_again(image, engine, config)
            _up_to_date.add(key)
    note_use(engine.address, image)


def _pull_or_fail_again(image: str, engine: Engine, config: SandboxConfig) -> None:
    key = (engine.address, source_of(image, config.mirror))
    failed_at, error = _failed.get(key, (0.0, None))
    if error is not None and time.monotonic() - failed_at < RETRY_S:
        raise type(error)(str(error))
    try:
        with _slots(config.pulls_at_once):
            _pull(image, engine, config)
    except GumshoeError as error:
        _failed[key] = (time.monotonic(), error)
        raise
    _failed.pop(key, None)


@functools.cache
def _slots(count: int) -> threading.Semaphore:
    """Limits how many images this process pulls at a time."""
    return threading.Semaphore(count)


def _pull(image: str, engine: Engine, config: SandboxConfig) -> None:
    source = source_of(image, config.mirror)
    with contextlib.closing(connect(engine)) as client:
        try:
            before, source_before = image_id(client, image), image_id(client, source)
            with make_room(client, engine.address, image, config.images_gb, lambda: compressed_size(source)):
                pull = functools.partial(client.api.pull, source, stream=True, decode=True)
                _follow(image, _unless_stalled(pull, config.pull_stall_s))
                if source != image:
                    repository, tag = parse_repository_tag(image)
                    client.api.tag(source, repository, tag or "latest")
                found: Any = client.images.get(image)
                size = int(found.attrs.get("Size") or 0)
                names = (image,) if source == image or source_before is not None else (image, source)
                if record_pull(engine.address, names, found.id, size, before) and before not in (None, found.id):
                    remove_nameless(client, before)
        except (DockerException, RequestException, OSError) as error:
            raise pull_error(image, source, describe_error(error)) from None
        finally:
            forget_found_images()


def _unless_stalled(pull: Callable[[], Iterable[dict[str, Any]]], stall_s: float) -> Generator[dict[str, Any]]:
    """The engine's report on a pull; raises DockerException if nothing comes for `stall_s`, and what `pull` raises."""
    arrived: queue.SimpleQueue[dict[str, Any] | BaseException | None] = queue.SimpleQueue()

    def read() -> None:
        try:
            for event in pull():
                arrived.put(event)
        except BaseException as error:
            arrived.put(error)
        arrived.put(None)

    threading.Thread(target=read, name="gumshoe-pull", daemon=True).start()
    while True:
        try:
            event = arrived.get(timeout=stall_s)
        except queue.Empty:
            raise DockerException(f"timed out: no progress for {stall_s:g} s, sandbox.pull_stall_s") from None
        if event is None:
            return
        if isinstance(event, BaseException):
            raise event
        yield event


def _follow(image: str, events: Iterable[dict[str, Any]]) -> None:
    """Reads the engine's report to its end and shows it. Raises DockerException where it reports an error."""
    began = shown = time.monotonic()
    layers: dict[str, tuple[int, int]] = {}
    _say(f"pulling {image}")
    for event in events:
        error = event.get("error") or (event.get("errorDetail") or {}).get("message")
        if error:
            raise DockerException(str(error))
        layer, detail = str(event.get("id")), event.get("progressDetail") or {}
        if event.get("status") == "Downloading" and detail.get("total"):
            layers[layer] = (int(detail.get("current") or 0), int(detail["total"]))
        elif event.get("status") in ("Download complete", "Pull complete") and layer in layers:
            layers[layer] = (layers[layer][1], layers[layer][1])
        if time.monotonic() - shown >= LINE_S:
            shown = time.monotonic()
            doing = "unpacking" if event.get("status") == "Extracting" else "pulling"
            _say(f"{doing} {image}: {_amount(layers)}{shown - began:.0f} s")
    _say(f"pulled {image}: {_amount(layers)}{time.monotonic() - began:.0f} s")


def _amount(layers: dict[str, tuple[int, int]]) -> str:
    """How much has arrived of the layers that the engine has begun to download."""
    done, total = (sum(sizes[which] for sizes in layers.values()) / 1e6 for which in (0, 1))
    return f"{done:.1f} of {total:.1f} MB, " if layers else ""


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")  # In one piece: other threads pull, too.
    sys.stderr.flush()


def pull_error(image: str, source: str, said: str) -> GumshoeError:
    """The engine's words as our error, in one line."""
    name = image if source == image else f"{image} (as {source})"
    for pattern, text, wrong_name in REASONS:
        if pattern.search(said):
            return (TaskError if wrong_name else SandboxError)(f"image {name} cannot be pulled: {text} ({said})")
    return SandboxError(f"image {name} cannot be pulled: {said}")


TIMEOUT_S = 10.0
MAX_BYTES = 4 << 20
HUB_REGISTRY = "registry-1.docker.io"
ACCEPT = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def compressed_size(image: str) -> int:
    """The compressed size of all layers; 0 where the registry does not tell those who have not logged in."""
    try:
        repository, tag = parse_repository_tag(image)
        host, name = resolve_repository_name(repository)
        with requests.Session() as session:
            session.trust_env = not _is_loopback(host)  # No proxy leads back to this machine.
            return _size(session, host, name, tag or "latest")
    except (RequestException, ValueError, TypeError, KeyError, AttributeError, OverflowError, IndexError):
        return 0


def _size(session: requests.Session, host: str, name: str, reference: str) -> int:
    if host == "docker.io":
        host, name = HUB_REGISTRY, name if "/" in name else f"library/{name}"
    base = f"{'http' if _is_loopback(host) else 'https'}://{host}/v2/{name}/manifests/"
    manifest = _get(session, base + reference)
    if "manifests" in manifest:
        manifest = _get(session, base + str(_for_this_machine(manifest["manifests"])["digest"]))
    return sum(max(0, int(layer["size"])) for layer in manifest["layers"])


def _for_this_machine(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    wanted = ARCHITECTURES.get(platform.machine(), platform.machine())
    fitting = [each for each in manifests if (each.get("platform") or {}).get("architecture") == wanted]
    return (fitting or manifests)[0]


def _get(session: requests.Session, url: str) -> dict[str, Any]:
    response = _request(session, url)
    challenge = response.headers.get("WWW-Authenticate", "")
    if response.status_code == 401 and challenge.lower().startswith("bearer "):
        facts = parse_dict_header(challenge[len("bearer ") :])
        realm = str(facts.pop("realm"))
        if url.startswith("https://") and not realm.startswith("https://"):
            raise ValueError("a registry may not redirect to a server without TLS")
        token = _read(_request(session, realm, params=facts))
        session.headers["Authorization"] = f"Bearer {token.get('token') or token['access_token']}"
        response = _request(session, url)
    return _read(response)


def _request(session: requests.Session, url: str, params: dict[str, Any] | None = None) -> requests.Response:
    return session.get(
        url, params=params, headers={"Accept": ACCEPT}, timeout=TIMEOUT_S, stream=True, allow_redirects=False
    )


def _read(response: requests.Response) -> dict[str, Any]:
    response.raise_for_status()
    return dict(parse_json(response.raw.read(MAX_BYTES, decode_content=True)))


def _is_loopback(host: str) -> bool:
    """Hosts that the engine, too, asks without TLS."""
    return host.partition(":")[0] == "localhost" or host.startswith("127.")
