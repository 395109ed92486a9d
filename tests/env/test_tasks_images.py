"""Tasks whose repository is in a container image, laid out as the official SWE-bench ones."""

from __future__ import annotations

import json
import shlex
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.patch import make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.check import check_task

pytestmark = pytest.mark.needs("docker")

BASE = "gumshoe-python:latest"
BUGGY = "def double(n):\n    return n\n"
OLD_TEST = "from shop import double\n\n\ndef test_zero():\n    assert double(0) == 0\n"
NEW_TEST = OLD_TEST + "\n\ndef test_double():\n    assert double(2) == 4\n"
DOCKER = SandboxConfig(kind="docker")
# Conda's own script reads variables that may not be set; whoever sources it has to bear that.
ACTIVATE = 'test "$1" = testbed && export CONDA_DEFAULT_ENV="$1"\n'
FILES = {
    "/testbed/shop.py": BUGGY,
    "/testbed/tests/test_shop.py": OLD_TEST,
    "/testbed/pytest.ini": "[pytest]\npythonpath = .\n",
    "/opt/miniconda3/bin/activate": ACTIVATE,
}


@pytest.fixture(scope="module")
def image() -> Generator[str]:
    import docker

    name = f"gumshoe-test-{uuid.uuid4().hex[:8]}"
    steps = [f"mkdir -p {Path(path).parent} && printf %s {shlex.quote(text)} > {path}" for path, text in FILES.items()]
    git = "git -c user.name=t -c user.email=t@t -c safe.directory=/testbed -C /testbed"
    steps += [f"{git} init -q", f"{git} add -A", f"{git} commit -qm base"]
    client = docker.from_env()
    container = client.containers.run(BASE, ["sh", "-ec", "\n".join(steps)], detach=True, network_mode="none")
    try:
        assert container.wait()["StatusCode"] == 0, container.logs()
        container.commit(name, "latest")
        yield f"{name}:latest"
        client.images.remove(f"{name}:latest", force=True)
    finally:
        container.remove(force=True)
        client.close()


def a_row(image: str, patch: str) -> dict[str, Any]:
    return {
        "repo": "owner/shop",
        "instance_id": "owner__shop-1",
        "base_commit": "abc",
        "patch": patch,
        "test_patch": make_patch({"tests/test_shop.py": (OLD_TEST.encode(), NEW_TEST.encode())}),
        "problem_statement": "double does not",
        "FAIL_TO_PASS": ["tests/test_shop.py::test_double"],
        "PASS_TO_PASS": ["tests/test_shop.py::test_zero"],
        "image": image,
        "version": "1",
    }


def checked(row: dict[str, Any], folder: Path, regime: str) -> str:
    rows = folder / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    ((task, oracle),) = load_tasks("swebench", path=rows, regime=regime)
    return "; ".join(check_task(task, oracle, DOCKER).problems)


@pytest.mark.parametrize("regime", ["issue", "debug"])
def test_an_instance_is_proven_in_both_regimes(regime: str, image: str, tmp_path: Path) -> None:
    gold = make_patch({"shop.py": (BUGGY.encode(), BUGGY.replace("return n", "return 2 * n").encode())})
    assert checked(a_row(image, gold), tmp_path, regime) == ""


def test_a_patch_that_repairs_nothing_is_found_out(image: str, tmp_path: Path) -> None:
    wrong = make_patch({"shop.py": (BUGGY.encode(), BUGGY.replace("return n", "return 3 * n").encode())})
    problems = checked(a_row(image, wrong), tmp_path, "debug")
    assert problems == "with the gold patch these tests should pass and do not: tests/test_shop.py::test_double"


def test_an_image_that_is_not_there_is_named(tmp_path: Path) -> None:
    problems = checked(a_row("gumshoe-test-no-such-image:latest", ""), tmp_path, "issue")
    assert "gumshoe-test-no-such-image" in problems
