"""Parts of the warden on their own, where a whole sandbox would not show them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.inside import state, system
from gumshoe.env.inside.disk import DiskFull, DiskWatch, written_since
from gumshoe.env.inside.files import Files, Ignore
from gumshoe.env.inside.processes import Child, Launch, wake_on_child
from gumshoe.env.inside.running import Run
from gumshoe.env.inside.searching import grep
from gumshoe.env.inside.tape import Scanner, Tape
from gumshoe.env.sandboxes.tape import text_of


@given(st.lists(st.binary(max_size=40)), st.integers(2, 60))
def test_a_tape_keeps_both_ends(chunks: list[bytes], cap: int) -> None:
    tape = Tape(cap)
    for chunk in chunks:
        tape.write(chunk)
    whole = b"".join(chunks)
    text, cut = text_of(tape.dump())
    assert cut == (len(whole) > 2 * (cap // 2))
    if cut:
        half = cap // 2
        mark = f"\n[... {len(whole) - 2 * half} bytes cut ...]\n"
        assert text == whole[:half].decode("utf-8", "replace") + mark + whole[-half:].decode("utf-8", "replace")
    else:
        assert text == whole.decode("utf-8", "replace")


@given(st.lists(st.text("ab", max_size=4)), st.text("ab", min_size=1, max_size=3))
def test_a_marker_is_found_wherever_it_is_cut(chunks: list[str], marker: str) -> None:
    tape = Tape(1 << 20)
    scanner = Scanner(tape, marker.encode())
    whole = "".join(chunks)
    behind = ""
    for chunk in chunks:
        if scanner.found:
            behind += chunk
        else:
            behind += scanner.feed(chunk.encode()).decode()
    scanner.flush()
    before, found, after = whole.partition(marker)
    assert (text_of(tape.dump())[0], scanner.found, behind) == (before, bool(found), after)


def test_the_watch_over_the_disk(tmp_path: Path) -> None:
    DiskWatch(1 << 50, str(tmp_path)).check()
    moment = time.time() - 1
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "new").write_bytes(b"x" * 100_000)
    (tmp_path / "link").symlink_to("/")
    assert written_since(moment, str(tmp_path)) >= 100_000
    assert written_since(time.time() + 60, str(tmp_path)) == 0
    with pytest.raises(DiskFull, match="of disk"):
        DiskWatch(-(1 << 50), str(tmp_path)).check()


def test_the_state_of_folders(tmp_path: Path) -> None:
    before: Any = state.inspect([str(tmp_path)], time.time() + 1e6, str(tmp_path))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").touch()
    (tmp_path / "link").symlink_to("/")
    during: Any = state.inspect([str(tmp_path)], time.time() + 1e6, str(tmp_path))
    assert [name for name, _ in during["folders"][str(tmp_path)]] == ["", "link", "sub", "sub/file"]
    state.empty(str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert state.inspect([str(tmp_path)], time.time() + 1e6, str(tmp_path))["folders"] == before["folders"]
    assert os.getpid() in during["processes"]
    after: Any = state.inspect([], time.time() - 60, str(tmp_path))
    assert after["elsewhere"] == []


def test_children_are_found_with_and_without_the_kernels_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        for lists in (True, False):
            monkeypatch.setattr(system, "_lists_children", lists)
            assert child.pid in system.children(os.getpid())
            assert child.pid in system.descendants(os.getpid())
            assert child.pid not in system.descendants(os.getpid(), {child.pid})
        child.kill()
    assert system.children(child.pid) == []


def test_a_program_without_a_nanny() -> None:
    """In a process of its own, which becomes the one that adopts orphans."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(writer, _run_without_nanny().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == "3 out\n|None True start\n|0"
    os.waitpid(process, 0)


def _run_without_nanny() -> str:
    system.adopt_orphans()
    wake = wake_on_child()[0]
    silent = SimpleNamespace(source=os.pipe()[0])
    told: list[str] = []
    for script, timeout in (("echo out; (setsid sleep 60 &); exit 3", 30), ("echo start; sleep 60", 3)):

        def start(stdin: int, stdout: int, script: str = script) -> Child:
            launch = Launch(["sh", "-c", script], "/", dict(os.environ), {}, stdin, stdout)
            return Child(launch, wake, set)

        run = Run(start, None, 1000)
        reply: Any = run.finish(timeout, silent)
        run.job.close()
        text = text_of(reply["output"])[0]
        told.append(f"{reply['exit_code']} {text}" if not reply["timed_out"] else f"{reply['exit_code']} True {text}")
    return "|".join([*told, str(len(system.children(os.getpid())))])


def test_a_search_takes_no_longer_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gumshoe.env.inside.searching.TIME_LIMIT_S", 0.2)
    (tmp_path / "long").write_text("a" * 5000 + "!")
    with pytest.raises(TimeoutError, match="longer than"):
        grep(Files(str(tmp_path)), "(a+)+$", ".", Ignore([]), 10, True)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


OLD_PYTHONS = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python3")) + [
    Path(name) for name in ("/usr/bin/python3",) if Path(name).exists()
]


@pytest.mark.parametrize("python", OLD_PYTHONS or [Path(sys.executable)], ids=str)
def test_the_warden_runs_on_every_python_there_is(python: Path) -> None:
    from gumshoe.env import SandboxConfig
    from gumshoe.env.sandboxes.client import WardenSandbox
    from gumshoe.env.sandboxes.link import Link
    from gumshoe.env.sandboxes.local import LocalBackend

    class OtherPython(LocalBackend):
        def __init__(self) -> None:
            super().__init__(SandboxConfig(kind="local"))
            self.place = replace(self.place, python=str(python))

    with WardenSandbox(Link(OtherPython(), 1 << 16)) as sandbox:
        sandbox.prepare_support()
        sandbox.write_file("a/b.txt", b"text\n")
        name = sandbox.snapshot()
        sandbox.remove_file("a/b.txt")
        assert list(sandbox.changes(name)) == ["a/b.txt"]
        sandbox.restore(name)
        assert sandbox.grep("te.t")[0][0].path == "a/b.txt"
        assert sandbox.run(["sh", "-c", "echo hi; (setsid sleep 60 &); exit 2"]).exit_code == 2
        assert sandbox.run(["sleep", "60"], timeout=0.2).timed_out
        session = sandbox.open_session(["sh", "-c", "read x; echo got $x; echo '{\"a\": 1}' >&$GUMSHOE_CONTROL"])
        session.send("it\n")
        reply = session.wait_message(30)
        assert (reply.output, reply.message) == ("got it\n", {"a": 1})
