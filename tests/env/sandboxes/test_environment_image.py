"""The environment of a harvested package in every isolating sandbox: mounted, or as a layer of an image."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from docker.errors import DockerException

from gumshoe.env.environments import RECORD
from gumshoe.env.sandboxes.containers.engine import ENGINES, connect
from gumshoe.env.sandboxes.containers.environment_image import REPOSITORY
from gumshoe.errors import SandboxError
from support.sandboxes.sandbox_backends import ISOLATED

PROGRAM = """\
import sys
from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.records import Task, WorkspaceSpec
spec = WorkspaceSpec(path=sys.argv[2], environment=sys.argv[3])
task = Task(id="e", source="t", problem_statement="", workspace=spec, entrypoint=("python", "-c", "pass"))
with open_sandbox(task, SandboxConfig(kind=sys.argv[1]), trusted=False) as sandbox:
    code = "import greeting, os, sys; print(greeting.WORD, os.environ['COLOR'], sys.prefix)"
    print(sandbox.run(["python", "-c", code]).output.strip())
    print(sandbox.run(["python", "-c", "open('/environment/new', 'w')"]).output.strip().splitlines()[-1])
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    """The name of an environment with a module of its own, and the cache that it is in."""
    cache, name = tmp_path_factory.mktemp("cache"), secrets.token_hex(8)
    folder = cache / "environments" / name
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "root")], check=True)
    next(folder.glob("root/lib/python3*/site-packages")).joinpath("greeting.py").write_text("WORD = 'hello'\n")
    record = {"version": sys.version_info[:2], "python": sys.executable, "lock": {"variables": {"COLOR": "blue"}}}
    (folder / RECORD).write_text(json.dumps(record))
    yield name, cache
    for engine in ENGINES.values():
        with suppress(SandboxError), closing(connect(engine)) as client:
            for image in client.images.list(name=REPOSITORY):
                if any(f":{name}-" in tag for tag in image.tags):
                    with suppress(DockerException):
                        client.images.remove(str(image.id), force=True)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the base image has Python 3.11")
@pytest.mark.parametrize("backend", ISOLATED)
def test_programs_run_in_the_environment_and_cannot_write_to_it(
    backend: str, environment: tuple[str, Path], tmp_path: Path
) -> None:
    name, cache = environment
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, backend, str(tmp_path), name],
        env={"PATH": "/usr/bin:/bin", "GUMSHOE_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    seen, refused = done.stdout.splitlines()
    assert seen == "hello blue /environment"
    assert "Read-only file system" in refused
