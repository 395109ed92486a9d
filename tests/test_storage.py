"""Files are written whole and read within bounds, and folders are locked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from gumshoe.cache import FolderCache
from gumshoe.cli import main
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.storage import (
    append_line,
    in_turn,
    is_locked,
    new_folder,
    open_append,
    parse_json,
    read_bounded,
    read_jsonl,
    read_records,
    take_lock,
    write_atomic,
    write_jsonl,
)


class Pair(BaseModel):
    name: str
    size: int


json_objects = st.dictionaries(st.text(max_size=5), st.text(max_size=8) | st.integers() | st.none(), max_size=4)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """A file in memory, for hundreds of examples."""
    file = Path(f"/dev/shm/gumshoe-storage-{os.getpid()}")
    yield file
    file.unlink(missing_ok=True)


@given(rows=st.lists(json_objects, max_size=6))
def test_rows_come_back_as_they_were_written(scratch: Path, rows: list[dict[str, object]]) -> None:
    write_jsonl(scratch, rows)
    assert list(read_jsonl(scratch)) == list(enumerate(rows, start=1))
    assert list(read_jsonl(scratch, finished=True)) == list(enumerate(rows, start=1))


@given(rows=st.lists(json_objects, min_size=1, max_size=4), data=st.data())
def test_every_cut_of_appended_lines_keeps_the_finished_ones(
    scratch: Path, rows: list[dict[str, object]], data: st.DataObject
) -> None:
    scratch.unlink(missing_ok=True)
    with open_append(scratch) as stream:
        for row in rows:
            append_line(stream, json.dumps(row, ensure_ascii=False), sync=False)
    content = scratch.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    scratch.write_bytes(content[:cut])
    kept = [row for _, row in read_jsonl(scratch, finished=True)]
    with open_append(scratch) as stream:
        append_line(stream, "{}", sync=False)
    assert [row for _, row in read_jsonl(scratch)] == [*kept, {}]
    assert len(kept) == content[:cut].count(b"\n")


def test_a_line_separator_inside_a_string_does_not_end_the_line(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"text": "a\u2028b\x85c"}\n\n{"text": "d"}', encoding="utf-8")
    assert list(read_jsonl(tmp_path / "x.jsonl")) == [(1, {"text": "a\u2028b\x85c"}), (3, {"text": "d"})]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "line 2: not JSON: "),
        (b"[" * 100_000, "line 2: not JSON: nested too deeply"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "line 2: not JSON: "),
        (b"\xff{}", "line 2: not JSON: "),
        (b"null", "line 2 is not a JSON object"),
        (b"[1]", "line 2 is not a JSON object"),
    ],
)
def test_a_broken_line_is_one_error_that_names_it(tmp_path: Path, line: bytes, why: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"{}\n" + line + b"\n{}\n")
    with pytest.raises(ConfigError) as caught:
        list(read_jsonl(file, error=ConfigError))
    assert str(caught.value).startswith(f"{file} {why}")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_wrong_record_is_reported_with_its_line_and_field(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    write_jsonl(file, [Pair(name="a", size=1), {"name": "b", "size": "no"}])
    found = read_records(file, Pair)
    assert next(found) == Pair(name="a", size=1)
    with pytest.raises(DatasetError, match=r"x\.jsonl line 2: size: Input should be a valid integer"):
        next(found)
    with pytest.raises(DatasetError, match=r"missing\.jsonl cannot be read: No such file"):
        list(read_records(tmp_path / "missing.jsonl", Pair))


def test_a_failed_write_leaves_the_old_file_and_nothing_beside(tmp_path: Path) -> None:
    file = tmp_path / "x"
    write_atomic(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomic(file, "\ud800")
    write_atomic(tmp_path / "y", b"\x00")
    assert file.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x", "y"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with new_folder(out) as fresh:
        (fresh / "a").write_text("1")
        assert not out.exists()
    with pytest.raises(FileNotFoundError), new_folder(out) as fresh:
        (fresh / "missing" / "b").write_text("2")
    assert [path.name for path in out.iterdir()] == ["a"]
    with new_folder(out) as fresh:
        (fresh / "c").write_text("3")
    assert [path.name for path in out.iterdir()] == ["c"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_pipe_a_device_and_a_sparse_file_are_refused_and_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(8 << 30)
    (tmp_path / "small").write_bytes(b"12345")
    for path, limit, why in (
        (tmp_path / "pipe", 10, "it is not a regular file"),
        (Path("/dev/zero"), 10, "it is not a regular file"),
        (tmp_path / "sparse", 10, "it is larger than 10 bytes"),
        (tmp_path / "small", 4, "it is larger than 4 bytes"),
    ):
        with pytest.raises(DatasetError, match=f"{path} cannot be read: {why}"):
            read_bounded(path, limit)
    assert read_bounded(tmp_path / "small", 5) == b"12345"


@pytest.mark.parametrize(
    "text", [r'{"a\udfff": ["x\ud800", "\ud83d\ude00"]}', '{"a\udfff": ["x\ud800", "\U0001f600"]}']
)
def test_half_a_character_is_replaced_and_a_whole_one_is_kept(text: str) -> None:
    whole = {"a\ufffd": ["x\ufffd", "\U0001f600"]}
    assert parse_json(text) == whole
    assert parse_json(text.encode("utf-8", "surrogatepass")) == whole


# --- folders that one process at a time works in

HOLDS = """
import sys
from pathlib import Path
from gumshoe.storage import take_lock

with take_lock(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""
MAKES = """
import sys, time
from pathlib import Path
from gumshoe.cache import FolderCache

def make(folder):
    with (folder / "made").open("a") as file:
        file.write("x")
    time.sleep(0.5)
    return {"made": (folder / "made").read_text()}

print(FolderCache(Path(sys.argv[1]), dict[str, str]).find("key", make)["made"])
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


def test_two_processes_that_need_the_same_result_make_it_once(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MAKES, str(tmp_path)]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["x\n", "x\n"]
    assert FolderCache(tmp_path, dict[str, str]).find("key", lambda folder: {"made": ""}) == {"made": "x"}


def test_two_harvests_do_not_share_a_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "package").mkdir()
    with take_lock(tmp_path):
        assert main(["harvest", str(tmp_path / "package"), "--out", str(tmp_path)]) == 2
    assert f"process {os.getpid()} is using the folder {tmp_path}: wait for it, or stop it" in capsys.readouterr().err
