"""An image of a made-up row: built from a bare repository and a small index, proven in both regimes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest
from testbed_images import GOLD, NEW_TESTS, OLD_TESTS, REPO

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.images import ImageBuilder
from gumshoe.env.images.dated_index import Upstream
from gumshoe.env.images.recipes import Recipe
from gumshoe.env.tasks.swebench import image_of, load_swebench
from gumshoe.env.verifier.check import check_task
from gumshoe.errors import TaskError

pytestmark = pytest.mark.needs("docker")

PYTHON = f"3.{sys.version_info.minor}"
BASE = "gumshoe-python:latest"
ID = "owner__made-up-shop-1"
UPLOADED = {"toy-1.0": "2020-01-01T00:00:00Z", "toy-2.0": "2099-01-01T00:00:00Z", "wheel-1.0": "2020-01-01T00:00:00Z"}
# The tests are run by Debian's pytest; only what the recipe asks for comes from the index.
RECIPE = Recipe(
    python=PYTHON,
    packages=("toy",),
    install="echo /usr/lib/python3/dist-packages > "
    "$(python -c 'import site; print(site.getsitepackages()[0])')/debian.pth\npython -c 'import toy'",
)


def wheel(name: str) -> bytes:
    project, _, version = name.partition("-")
    about, buffer = f"{project}-{version}.dist-info", io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(f"{project}.py", f"version = {version!r}\n")
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return buffer.getvalue()


class Index(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        kind, name = self.path.strip("/").split("/")
        files = [
            {"filename": f"{each}-py3-none-any.whl", "url": f"/files/{each}", "upload-time": uploaded}
            for each, uploaded in UPLOADED.items()
            if each.startswith(f"{name}-")
        ]
        if kind == "simple" and not files:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(wheel(name) if kind == "files" else json.dumps({"files": files}).encode())


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Upstream(f"http://127.0.0.1:{server.server_port}/simple")
        server.shutdown()


@pytest.fixture
def row(tmp_path: Path) -> dict[str, Any]:
    """A row of a repository that is in the folder `mirrors`."""
    work = tmp_path / "work"
    for path, data in REPO.items():
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_bytes(data)
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "base")
    git(tmp_path, "clone", "-q", "--bare", "work", "mirrors/owner/made-up-shop.git")
    return {
        "repo": "owner/made-up-shop",
        "instance_id": ID,
        "base_commit": git(work, "rev-parse", "HEAD"),
        "patch": GOLD,
        "test_patch": make_patch({"tests/test_shop.py": (OLD_TESTS, NEW_TESTS)}),
        "problem_statement": "double and triple do not",
        "created_at": "2024-01-01T00:00:00Z",
        "version": "1.0",
        "FAIL_TO_PASS": '["tests/test_shop.py::test_double", "tests/test_shop.py::test_triple"]',
        "PASS_TO_PASS": '["tests/test_shop.py::test_zero", "tests/test_shop.py::test_same"]',
    }


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_an_image_is_built_and_proven(row: dict[str, Any], upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    client: Any = docker.from_env()
    said: list[str] = []
    builder = ImageBuilder(
        client, tmp_path / "mirrors", base=BASE, recipe=lambda *_: RECIPE, upstream=upstream, say=said.append
    )
    try:
        for regime in ("issue", "debug"):
            ((task, oracle),) = load_swebench(tmp_path / "rows.jsonl", regime=regime)
            built = builder.build(row, task)
            assert built == (image_of(ID) if regime == "issue" else None), "what is there is not built again"
            assert check_task(task, oracle, SandboxConfig(kind="docker", pull="never")).problems == ()
        command = (
            "source /opt/miniconda3/bin/activate testbed; python -c 'import toy; print(toy.version)'; pwd; git tag"
        )
        shown = client.containers.run(image_of(ID), ["bash", "-c", command], remove=True, network_mode="none")
        assert shown.decode().split() == ["1.0", "/testbed"]
        assert not client.containers.list(filters={"ancestor": image_of(ID)}, all=True)
    finally:
        for name in [image_of(ID), *_packages(client, image_of(ID))]:
            client.images.remove(name, force=True)
        client.close()


def _packages(client: Any, image: str) -> list[str]:
    """The layer below a row's image."""
    parents = {layer["Id"]: layer["Tags"] or () for layer in client.images.get(image).history()}
    return [tag for tags in parents.values() for tag in tags if tag.startswith("gumshoe-testbed:packages-")]


def test_a_step_that_fails_is_told_in_a_line(row: dict[str, Any], upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    ((task, _),) = load_swebench(tmp_path / "rows.jsonl")
    client: Any = docker.from_env()
    recipe = Recipe(python=PYTHON, packages=("not-in-the-index",))
    builder = ImageBuilder(client, tmp_path / "mirrors", base=BASE, recipe=lambda *_: recipe, upstream=upstream)
    nowhere = ImageBuilder(client, tmp_path / "work", base=BASE, recipe=lambda *_: recipe, upstream=upstream)
    try:
        with pytest.raises(TaskError, match=r"(No matching|satisfies the) .*not-in-the-index"):
            builder.build(row, task)
        with pytest.raises(TaskError, match="no repository of owner/made-up-shop in"):
            nowhere.build(row, task)
    finally:
        client.close()
