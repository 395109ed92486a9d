"""Folders that one process at a time works in."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.packages.cache import StageCache
from gumshoe.errors import ConfigError
from gumshoe.locks import in_turn, is_locked, take_lock

HOLDS = """
import sys
from pathlib import Path
from gumshoe.locks import take_lock

with take_lock(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""
MAKES = """
import sys, time
from pathlib import Path
from gumshoe.env.bugs.packages.cache import StageCache

def make(folder):
    with (folder / "made").open("a") as file:
        file.write("x")
    time.sleep(0.5)
    return {"made": (folder / "made").read_text()}

print(StageCache("get", dict[str, str]).get("key", make)["made"])
"""


def test_a_folder_in_use_names_its_process_and_is_free_after_its_death(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert is_locked(tmp_path)
        with pytest.raises(ConfigError, match=f"process {process.pid} is using the folder {tmp_path}: wait for it"):
            take_lock(tmp_path)
        process.kill()
    assert not is_locked(tmp_path)
    take_lock(tmp_path).close()
    assert not is_locked(tmp_path / "nothing")


def test_threads_wait_for_their_turn(tmp_path: Path) -> None:
    inside: list[int] = []

    def work(number: int) -> bool:
        with in_turn(tmp_path):
            inside.append(number)
            alone = inside == [number]
            inside.remove(number)
            return alone

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(200)))


def test_two_processes_that_need_the_same_stage_make_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path))
    both = [subprocess.Popen([sys.executable, "-c", MAKES], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["x\n", "x\n"]
    assert StageCache("get", dict[str, str]).get("key", lambda folder: {"made": ""}) == {"made": "x"}


def test_two_harvests_do_not_share_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "package").mkdir()
    with take_lock(tmp_path):
        assert main(["harvest", str(tmp_path / "package"), "--out", str(tmp_path)]) == 2
    assert f"process {os.getpid()} is using the folder {tmp_path}: wait for it, or stop it" in capsys.readouterr().err
