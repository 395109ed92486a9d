"""A patch is right when `git apply` makes the content after out of the content before."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumshoe.env.diff import make_patch

Changes = dict[str, tuple[bytes | None, bytes | None]]

LINES = st.lists(st.sampled_from(["a", "b", "", "  x = 1", "\u00e9", "\r", "-- c", "+d"]), max_size=12)
TEXT = st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), LINES, st.sampled_from(["", "\n"]))
BYTES = st.binary(max_size=300)
CONTENT = st.none() | TEXT | BYTES
NAMES = st.sampled_from(
    [
        "a.py",
        "dir/b.py",
        "with space.txt",
        "caf\u00e9.py",
        'quo"te',
        "tab\there",
        "back\\slash",
        "new\nline",
        "\udcff.bin",
    ]
)


def apply(changes: Changes, patch: str) -> Changes:
    """What `git apply` leaves, beside what it should."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        for path, (before, _) in changes.items():
            if before is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(before)
        argv = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(argv, cwd=folder, input=patch.encode(), check=True, capture_output=True)
        return {
            path: (before, (folder / path).read_bytes() if (folder / path).exists() else None)
            for path, (before, _) in changes.items()
        }


@settings(max_examples=60)
@given(st.dictionaries(NAMES, st.tuples(CONTENT, CONTENT), min_size=1, max_size=4))
def test_git_applies_what_we_write(changes: Changes) -> None:
    patch = make_patch(changes)
    if patch:
        assert apply(changes, patch) == changes
    else:
        assert all(before == after for before, after in changes.values())


def test_a_change_reads_as_git_writes_it() -> None:
    before = b"one\ntwo\nthree\n"
    assert make_patch({"f.py": (before, b"one\n2\nthree")}) == (
        "diff --git a/f.py b/f.py\n"
        "index 4cb29ea..a623a0b 100644\n"
        "--- a/f.py\n"
        "+++ b/f.py\n"
        "@@ -1,3 +1,3 @@\n"
        " one\n"
        "-two\n"
        "-three\n"
        "+2\n"
        "+three\n"
        "\\ No newline at end of file\n"
    )


@pytest.mark.parametrize("data", [b"", b"text\n", b"\0binary", b"\xff"])
def test_a_file_can_come_and_go(data: bytes) -> None:
    came: Changes = {"f": (None, data)}
    went: Changes = {"f": (data, None)}
    assert "new file mode 100644" in make_patch(came)
    assert "deleted file mode 100644" in make_patch(went)
    assert apply(came, make_patch(came)) == came
    assert apply(went, make_patch(went)) == went


def test_nothing_changed() -> None:
    assert make_patch({"a": (b"x", b"x"), "b": (None, None)}) == ""


def test_a_patch_is_always_text() -> None:
    make_patch({"a": (None, bytes(range(256)))}).encode("utf-8")
