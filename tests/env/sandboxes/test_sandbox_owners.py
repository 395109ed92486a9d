"""What dead processes left behind is removed, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gumshoe.env.sandboxes.host.owners import identity, is_running, name_folder, reap_folders

MAKE_AND_DIE = """
import os
from gumshoe.env.sandboxes.host.owners import name_folder
folder = name_folder()
(folder / "sub").mkdir(parents=True)
(folder / "sub" / "file").write_text("x")
print(folder, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary folders, of this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def orphan() -> Path:
    done = subprocess.run([sys.executable, "-c", MAKE_AND_DIE], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip())


def test_only_folders_of_the_dead_are_removed(temporary: Path) -> None:
    left, own = orphan(), name_folder()
    own.mkdir()
    assert left.parent == own.parent == temporary
    world, pid, started = left.name.split("-")[1:4]
    elsewhere = temporary / f"gumshoe-{'0' * 8}-{pid}-{started}-abc"
    elsewhere.mkdir()
    (temporary / "gumshoe-notes").mkdir()
    (temporary / f"gumshoe-{world}-{pid}-{started}-file").touch()
    (temporary / f"gumshoe-{world}-{pid}-{started}-link").symlink_to(own)
    kept = set(temporary.iterdir()) - {left}
    assert reap_folders() == [left.name]
    assert set(temporary.iterdir()) == kept
    assert reap_folders() == []


def test_the_doctor_reaps_folders_even_where_no_daemon_answers_and_so_does_the_next_run(temporary: Path) -> None:
    left = orphan()
    env = {**os.environ, "DOCKER_HOST": f"unix://{temporary}/no.sock"}
    argv = [sys.executable, "-m", "gumshoe", "doctor", "--reap"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert "no containers were removed: no Docker daemon answers" in done.stdout
    assert f"removed 1 temporary folders of dead runs: {left.name}" in done.stdout
    assert not left.exists()
    left = orphan()
    code = "from gumshoe.env.config import SandboxConfig\nfrom gumshoe.env.sandboxes.local import LocalBackend\n"
    subprocess.run([sys.executable, "-c", f"{code}LocalBackend(SandboxConfig()).close()"], check=True)
    assert not left.exists()
    assert list(temporary.iterdir()) == []


def test_a_process_is_known_by_more_than_its_number_and_lives_until_it_is_dead() -> None:
    me = identity(os.getpid())
    assert is_running(me)
    boot, pid, started = me.split("/")
    for other in (f"{boot}/{pid}/{int(started) + 1}", f"x/{pid}/{started}", f"{boot}/x/{started}", "", "//"):
        assert not is_running(other)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        named = identity(process.pid)
        assert is_running(named)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(named)
