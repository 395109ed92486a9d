"""Parts of the warden on their own, where a whole sandbox would not show them."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.config import SandboxConfig
from gumshoe.env.inside.warden import system
from gumshoe.env.inside.warden.disk import deleted_but_open
from gumshoe.env.inside.warden.programs import BoundedBuffer
from gumshoe.env.inside.warden.sessions import Scanner, read_object
from gumshoe.env.sandboxes.channel import Link, text_of
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.local import LocalBackend
from support.pythons import find_pythons


@given(st.lists(st.binary(max_size=40)), st.integers(2, 60))
def test_a_bounded_buffer_keeps_both_ends(chunks: list[bytes], cap: int) -> None:
    buffer = BoundedBuffer(cap)
    for chunk in chunks:
        buffer.write(chunk)
    whole = b"".join(chunks)
    text, cut = text_of(buffer.dump())
    assert cut == (len(whole) > 2 * (cap // 2))
    half = cap // 2
    parts = [whole[:half], b"\n[... %d bytes cut ...]\n" % (len(whole) - 2 * half), whole[-half:]] if cut else [whole]
    assert text == "".join(part.decode("utf-8", "replace") for part in parts)


@given(st.lists(st.text("ab", max_size=4)), st.text("ab", min_size=1, max_size=3))
def test_a_marker_is_found_wherever_it_is_cut(chunks: list[str], marker: str) -> None:
    buffer = BoundedBuffer(1 << 20)
    scanner = Scanner(buffer, marker.encode())
    whole = "".join(chunks)
    behind = ""
    for chunk in chunks:
        behind += chunk if scanner.found else scanner.feed(chunk.encode()).decode()
    scanner.flush()
    before, found, after = whole.partition(marker)
    assert (text_of(buffer.dump())[0], scanner.found, behind) == (before, bool(found), after)


def test_deleted_files_that_are_open_count(tmp_path: Path) -> None:
    code = (
        "import os, sys\nf = open(sys.argv[1], 'wb'); f.write(b'x' * 50_000_000); f.flush(); os.unlink(sys.argv[1])\n"
    )
    argv = [sys.executable, "-c", code + "print('up', flush=True); input()", str(tmp_path / "gone")]
    before = deleted_but_open(str(tmp_path))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        # Other processes open and delete smaller files on the same file system meanwhile.
        assert deleted_but_open(str(tmp_path)) >= before + 40_000_000
        process.communicate(b"\n")


def test_children_are_found_with_and_without_the_kernels_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        for lists in (True, False):
            monkeypatch.setattr(system, "_lists_children", lists)
            assert child.pid in system.children(os.getpid())
            assert child.pid in system.descendants(os.getpid())
            assert child.pid not in system.descendants(os.getpid(), {child.pid})
        child.kill()
    assert system.children(child.pid) == []


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_a_message_is_read_as_it_was_written_or_not_at_all(value: Any) -> None:
    read: Any = read_object(json.dumps({"value": value}).encode(), 1 << 20)
    if read is not None:
        assert read == json.loads(json.dumps({"value": value}))
        json.dumps(read, allow_nan=False, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"", b"\xff", b"[1]", b"7", b"{", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": 9223372036854775808}',
        b'{"a": ' + b"9" * 100_000 + b"}", b'{"a": ' + b"[" * 100_000, b'{"a": ' + b"[" * 99 + b"]" * 99 + b"}",
        b'{"a": "' + b"x" * 2000 + b'"}',
    ],
)  # fmt: skip
def test_what_is_no_object_within_bounds_is_not_read(line: bytes) -> None:
    assert read_object(line, 1000 if len(line) < 3000 else 1 << 20) is None
    # Half a surrogate pair is replaced.
    assert read_object(b'{"\\ud800": ["\\udfff"]}', 100) == {"?": ["?"]}


@pytest.mark.parametrize("python", find_pythons(with_pytest=False), ids=str)
def test_the_warden_runs_on_every_python_there_is(python: Path) -> None:
    class OtherPython(LocalBackend):
        def __init__(self) -> None:
            super().__init__(SandboxConfig(kind="local", unsafe=True))
            self.layout = replace(self.layout, python=str(python))

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
        session = sandbox.open_session(
            ["sh", "-c", 'eval read m "<&$GUMSHOE_CONTROL"; echo got it; echo $m >&$GUMSHOE_CONTROL']
        )
        reply = session.request({"a": 1}, 30)
        assert (reply.output, reply.message) == ("got it\n", {"a": 1})
