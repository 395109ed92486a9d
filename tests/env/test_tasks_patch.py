"""Patches as data: applying them, and the lines that a gold patch touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.env.patch import make_patch
from gumshoe.env.tasks import apply_patch, gold_lines
from gumshoe.env.tasks.apply import patched_paths
from gumshoe.errors import TaskError

# Lines with what line splitting gets wrong: form feeds, carriage returns, separators, no newline at the end.
PIECES = st.sampled_from(["a\n", "b\n", "a\r\n", "\n", "c\x0cd\n", "e\u2028f\n", "-- x\n", "++ y\n", "\\ z\n", " \n"])
TEXTS = st.builds("".join, st.lists(PIECES, max_size=12)) | st.builds(
    lambda pieces: "".join(pieces) + "end", st.lists(PIECES, max_size=6)
)
PATHS = st.sampled_from(["m.py", "a/b.py", "a folder/c.py", "dé.py", 'q"uote.py'])


def diff(before: dict[str, str | None], after: dict[str, str | None]) -> str:
    def data(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    return make_patch({path: (data(before.get(path)), data(after.get(path))) for path in before | after})


@given(PATHS, TEXTS, TEXTS)
def test_a_diff_applied_to_the_text_before_gives_the_text_after(path: str, before: str, after: str) -> None:
    patch = diff({path: before}, {path: after})
    assert apply_patch({path: before}, patch) == ({} if before == after else {path: after})


@given(TEXTS, TEXTS)
def test_gold_lines_are_lines_of_the_text_before(before: str, after: str) -> None:
    count = len(before.split("\n")) - before.endswith("\n") if before else 0
    for lines in gold_lines(diff({"m.py": before}, {"m.py": after})).values():
        assert lines
        assert lines <= set(range(1, max(count, 1) + 1))


def test_files_are_made_and_deleted() -> None:
    patch = diff({"old.py": "x\n", "new.py": None}, {"old.py": None, "new.py": "y\n"})
    assert apply_patch({"old.py": "x\n"}, patch) == {"old.py": None, "new.py": "y\n"}
    assert patched_paths(patch) == ["old.py"]


def test_what_git_writes_is_understood(tmp_path: Path) -> None:
    """Renames, quoted names, an empty file: the forms that only git produces."""

    def git(*arguments: str) -> str:
        config = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false"]
        return subprocess.run(
            ["git", *config, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    body = "".join(f"line {number}\n" for number in range(20))
    (tmp_path / "über.py").write_text(body)
    (tmp_path / "gone.py").write_text("")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "before")
    git("mv", "über.py", "moved once.py")
    (tmp_path / "moved once.py").write_text(body.replace("line 7", "line seven"))
    git("rm", "-q", "gone.py")
    git("add", "-A")
    patch = git("diff", "--cached", "-M")
    changed = apply_patch({"über.py": body, "gone.py": ""}, patch)
    assert changed == {"über.py": None, "moved once.py": body.replace("line 7", "line seven"), "gone.py": None}
    assert gold_lines(patch) == {"über.py": {8}, "gone.py": set()}


def test_a_plain_diff_without_prefixes_is_understood() -> None:
    patch = "--- x.py\n+++ x.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert apply_patch({"x.py": "a\nb\n"}, patch) == {"x.py": "a\nc\n"}
    assert gold_lines(patch) == {"x.py": {2}}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", {2}),
        ("a\nb\nc\n", "a\nc\n", {2}),
        ("a\nb\nc\n", "a\nb\nx\nc\n", {2}),
        ("a\nb\n", "x\na\nb\n", {1}),
        ("a\nb\n", "a\nb\nx\n", {2}),
        ("a\nb\nc\nd\n", "A\nb\nc\nx\nd\n", {1, 3}),
        ("", "x\n", {1}),
    ],
)
def test_gold_lines_of_replacing_deleting_and_inserting(before: str, after: str, lines: set[int]) -> None:
    assert gold_lines(diff({"m.py": before}, {"m.py": after})) == {"m.py": lines}


def test_an_added_file_has_no_gold_lines() -> None:
    assert gold_lines(diff({"new.py": None}, {"new.py": "x\n"})) == {}


@pytest.mark.parametrize(
    ("files", "patch", "message"),
    [
        ({}, "just words\n", "not a unified diff"),
        ({}, "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n", "not a unified diff"),
        ({}, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "no file x"),
        ({"x": "b\n"}, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", r"x:1 should be 'a\\n' but is 'b\\n'"),
        ({"x": ""}, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "the end of the file"),
        ({"x": "a\n"}, "--- a/x\n+++ b/x\n@@ -7 +7 @@\n-a\n+b\n", "x has no line 7"),
        ({"x": ""}, "diff --git a/x b/x\nindex 1..2\nGIT binary patch\nliteral 0\n\n", "binary file x"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(files: dict[str, str], patch: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        apply_patch(files, patch)
