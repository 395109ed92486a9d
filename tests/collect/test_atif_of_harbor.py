"""Harbor's own models of its trajectory format accept what we write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

from gumshoe.collect.data.interchange import to_atif
from gumshoe.records import Trajectory
from support.collect.trajectory_strategies import foreign, own

READ = """\
import json, sys
from harbor.models.trajectories import Trajectory
for line in sys.stdin:
    read = Trajectory.model_validate(json.loads(line))
    print(read.schema_version, len(read.steps))
try:
    Trajectory.model_validate({**json.loads(line), "surprise": 1})
except ValueError:
    print("refused")
"""


@pytest.fixture(scope="module")
def harbor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Harbor's code alone: its dependencies do not fit ours."""
    folder = tmp_path_factory.mktemp("harbor")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    options = ["--no-deps", "--ignore-requires-python", "--target", str(folder), "harbor==0.25.0"]
    subprocess.run([*pip, *options], check=True, capture_output=True, text=True)
    return folder


def drawn(count: int) -> list[Trajectory]:
    found: list[Trajectory] = []

    @hypothesis.settings(max_examples=count, deadline=None, database=None, derandomize=True)
    @hypothesis.given(one=own() | foreign())
    def draw(one: Trajectory) -> None:
        found.append(one)

    draw()
    return found


def test_harbor_reads_every_trajectory_that_we_write(harbor: Path) -> None:
    written = drawn(60)
    lines = "".join(json.dumps(to_atif(one)) + "\n" for one in written)
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={"PYTHONPATH": str(harbor)},
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *read, last = done.stdout.splitlines()
    assert read == [f"ATIF-v1.8 {sum(m.role != 'tool' for m in one.messages)}" for one in written]
    assert last == "refused"
