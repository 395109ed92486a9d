"""How many bytes a registry sends for an image, as its manifest says (OCI and Docker's version 2)."""

from __future__ import annotations

import platform
from typing import Any

import requests
from docker.auth import resolve_repository_name
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException
from requests.utils import parse_dict_header

from gumshoe.storage import parse_json

__all__ = ["compressed_size"]

TIMEOUT_S = 10.0
MAX_BYTES = 4 << 20
DOCKER_HUB = "registry-1.docker.io"
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
        host, name = DOCKER_HUB, name if "/" in name else f"library/{name}"
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
