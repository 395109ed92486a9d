"""Images laid out as the official ones of SWE-bench: the repository in /testbed, conda in /opt, an environment."""

from __future__ import annotations

import io
import tarfile
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from gumshoe.env.diff import make_patch

BASE = "gumshoe-python:latest"
# As conda's own does, it reads variables that may not be set; whoever sources it has to bear that.
ACTIVATE = """\
conda() {
  export CONDA_DEFAULT_ENV="$2" CONDA_PREFIX="/opt/miniconda3/envs/$2" MARK="$UNSET_BY_ALL"
  export PATH="$CONDA_PREFIX/bin:$PATH"
}
if [ "$#" -gt 0 ]; then conda activate "$1"; fi
"""
DOCKERFILE = """\
FROM {base}
COPY files /
RUN python3 -m venv --without-pip --system-site-packages {environment}
RUN cd /testbed && git init -q -b main && git add -A -f && \\
    git -c user.name=t -c user.email=t@t commit -qm base && git rev-parse HEAD > /base_commit
{more}
STOPSIGNAL SIGKILL
"""
ENVIRONMENT = "/opt/miniconda3/envs/testbed"
REPO = {
    "shop.py": b'"""A shop."""\n\nimport os\n\n\n'
    b"def double(n):\n    return n\n\n\ndef triple(n):\n    return n\n\n\ndef same(n):\n    return n\n",
    "tests/test_shop.py": (
        b"from shop import double, same\n\n\ndef test_zero():\n    assert double(0) == 0\n\n\n"
        b"def test_same():\n    assert same(4) == 4\n"
    ),
    "pytest.ini": b"[pytest]\npythonpath = .\n",
    "crlf.txt": b"one\r\ntwo\r\n",
    "notes/größe 1.txt": b"a\n",
    "blob.bin": bytes(range(256)),
    "old.py": b"x = 1\n",
}
CLEAN = (
    REPO["shop.py"]
    .replace(b"    return n\n", b"    return 2 * n\n", 1)
    .replace(b"def triple(n):\n    return n\n", b"def triple(n):\n    return 3 * n\n")
)
OLD_TESTS = REPO["tests/test_shop.py"]
NEW_TESTS = (
    OLD_TESTS.replace(b"double, same", b"double, same, triple")
    + b"\n\ndef test_double():\n    assert double(2) == 4\n\n\ndef test_triple():\n    assert triple(2) == 6\n"
)
GOLD = make_patch({"shop.py": (REPO["shop.py"], CLEAN)})


@contextmanager
def built_image(
    files: Mapping[str, bytes] = REPO, more: str = "", *, conda: bool = True, environment: str = ENVIRONMENT
) -> Generator[str]:
    """An image with a repository of these files, its first commit in /base_commit; removed at the end.

    Args:
        more: further lines of its Dockerfile.
        conda: whether there is a conda.
        environment: where the environment is.
    """
    import docker

    name = f"gumshoe-test-{uuid.uuid4().hex[:8]}:latest"
    text = DOCKERFILE.format(base=BASE, environment=environment, more=more)
    placed = {f"files/testbed/{path}": data for path, data in files.items()}
    if conda:
        placed["files/opt/miniconda3/bin/activate"] = ACTIVATE.encode()
    client: Any = docker.from_env()
    try:
        context = tar_of({"Dockerfile": text.encode(), **placed})
        client.images.build(fileobj=context, custom_context=True, tag=name, rm=True, forcerm=True, network_mode="none")
        yield name
    finally:
        client.images.remove(name, force=True)
        client.close()


def tar_of(files: Mapping[str, bytes]) -> io.BytesIO:
    """A tar archive of files, of which scripts are programs."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            info.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(info, io.BytesIO(data))
    buffer.seek(0)
    return buffer


def a_row(image: str, **changes: Any) -> dict[str, Any]:
    """A row of the shop, to be completed for the harness."""
    return {
        "repo": "owner/shop",
        "instance_id": "owner__shop-1",
        "base_commit": "HEAD",
        "patch": GOLD,
        "test_patch": make_patch({"tests/test_shop.py": (OLD_TESTS, NEW_TESTS)}),
        "problem_statement": "double and triple do not",
        "hints_text": "",
        "created_at": "2024-01-01T00:00:00Z",
        "version": "1.0",
        "environment_setup_commit": "HEAD",
        "FAIL_TO_PASS": '["tests/test_shop.py::test_double", "tests/test_shop.py::test_triple"]',
        "PASS_TO_PASS": '["tests/test_shop.py::test_zero", "tests/test_shop.py::test_same"]',
        "image": image,
        **changes,
    }
