"""Patches: `git apply` makes of them the content after, and so does a sandbox that has no git."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import (
    GitBlob,
    apply_patch,
    apply_to_folder,
    apply_to_sandbox,
    gold_lines,
    make_patch,
    reverse_patch,
    source_paths,
)
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.errors import TaskError
from gumshoe.protocols import Sandbox
from support.folder_tasks import folder_task, git, write_files

# Lines with what line splitting gets wrong: form feeds, carriage returns, separators, no newline at the end.
PIECES = st.sampled_from(["a\n", "b\n", "a\r\n", "\n", "c\x0cd\n", "e\u2028f\n", "-- x\n", "++ y\n", "\\ z\n", " \n"])
TEXTS = st.builds("".join, st.lists(PIECES, max_size=12)) | st.builds(
    lambda pieces: "".join(pieces) + "end", st.lists(PIECES, max_size=6)
)
PATHS = st.sampled_from(["m.py", "a/b.py", "a folder/c.py", "dé.py", 'q"uote.py'])


BINARY = "diff --git a/x b/x\nindex 1..2\nGIT binary patch\n"


def diff(before: dict[str, str | None], after: dict[str, str | None]) -> str:
    def data(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    return make_patch({path: (data(before.get(path)), data(after.get(path))) for path in before | after})


@given(PATHS, TEXTS, TEXTS)
def test_a_diff_applied_to_the_text_before_gives_the_text_after(path: str, before: str, after: str) -> None:
    patch = diff({path: before}, {path: after})
    assert apply_patch({path: before}, patch) == ({} if before == after else {path: after})


@given(st.binary(max_size=300), st.binary(max_size=300), TEXTS)
def test_binary_contents_are_carried_as_they_are(before: bytes, after: bytes, text: str) -> None:
    """Beside text files, whose lines do not disturb them."""
    before, after = b"\0" + before, b"\0" + after
    patch = make_patch({"a.bin": (before, after), "b.py": (b"", text.encode()), "c.bin": (None, before)})
    files = {"a.bin": before.decode("utf-8", "surrogateescape"), "b.py": ""}
    made = {path: (found or "").encode("utf-8", "surrogateescape") for path, found in apply_patch(files, patch).items()}
    wanted = {"a.bin": (before, after), "b.py": (b"", text.encode()), "c.bin": (None, before)}
    assert made == {path: now for path, (then, now) in wanted.items() if then != now}


@given(PATHS, TEXTS, TEXTS)
def test_the_way_back_undoes_a_patch(path: str, before: str, after: str) -> None:
    patch = diff({path: before}, {path: after})
    if before != after:
        assert apply_patch({path: after}, reverse_patch(patch)) == {path: before}
        assert reverse_patch(reverse_patch(patch)) == patch


def test_new_deleted_and_renamed_files_and_the_way_back() -> None:
    patch = diff({"old.py": "x\n", "new.py": None}, {"old.py": None, "new.py": "y\n"})
    assert apply_patch({"old.py": "x\n"}, patch) == {"old.py": None, "new.py": "y\n"}
    assert source_paths(patch) == ["old.py"]
    assert gold_lines(patch) == {"old.py": {1}}
    assert apply_patch({"new.py": "y\n"}, reverse_patch(patch)) == {"old.py": "x\n", "new.py": None}
    moved = "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\nrename to b.py\n"
    assert apply_patch({"b.py": "x\n"}, reverse_patch(moved)) == {"b.py": None, "a.py": "x\n"}
    with pytest.raises(TaskError, match="only text can be reversed"):
        reverse_patch(make_patch({"a.bin": (b"\0", b"\1\0")}))


@given(TEXTS)
def test_a_folder_is_patched_whole_or_not_at_all(text: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "a.py").write_text("one\n")
        (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
        (folder / "run.sh").chmod(0o755)
        patch = diff({"a.py": "one\n", "run.sh": "#!/bin/sh\n"}, {"a.py": None, "b/c d.py": text, "run.sh": "exit\n"})
        assert set(apply_to_folder(folder, patch)) >= {"a.py", "run.sh"}
        assert not (folder / "a.py").exists()
        assert (folder / "b" / "c d.py").read_bytes() == text.encode()
        assert (folder / "run.sh").stat().st_mode & 0o777 == 0o755
        before = sorted(folder.rglob("*"))
        with pytest.raises(TaskError, match="does not apply"):
            apply_to_folder(folder, diff({"x.py": None, "run.sh": "other\n"}, {"x.py": "1\n", "run.sh": "2\n"}))
        assert sorted(folder.rglob("*")) == before


def test_a_folder_gets_the_modes_of_a_patch(tmp_path: Path) -> None:
    program = GitBlob(b"#!/bin/sh\n", "100755")
    for name, mode in (("off.sh", 0o750), ("on.sh", 0o640), ("moved.sh", 0o755)):
        (tmp_path / name).write_bytes(program)
        (tmp_path / name).chmod(mode)
    (tmp_path / "secret.txt").touch(mode=0o600)  # One that a patch makes anew keeps its mode, too.
    changes = {"new.sh": (None, program), "off.sh": (program, bytes(program)), "on.sh": (b"", program)}
    patch = make_patch({**changes, "secret.txt": (None, b"x\n")})
    moved = "diff --git a/moved.sh b/there.sh\nsimilarity index 100%\nrename from moved.sh\nrename to there.sh\n"
    (tmp_path / "on.sh").write_bytes(b"")
    assert set(apply_to_folder(tmp_path, patch + moved)) == {"moved.sh", "there.sh", *changes, "secret.txt"}
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes.pop("new.sh") & 0o111
    assert modes == {"off.sh": 0o640, "on.sh": 0o750, "there.sh": 0o755, "secret.txt": 0o600}


def test_a_patch_of_a_link_or_that_leads_out_is_refused_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a\n")
    (tmp_path / "link.py").symlink_to("a.py")
    target, other = GitBlob(b"a.py", "120000"), GitBlob(b"b.py", "120000")
    for changes in ({"new.py": (None, target)}, {"link.py": (target, other)}, {"link.py": (target, None)}):
        with pytest.raises(TaskError, match=r"the patch changes the link (new|link)\.py: use `git apply`"):
            apply_to_folder(tmp_path, make_patch({"a.py": (b"a\n", b"b\n"), **changes}))
    for path in ("../out.py", ".git/config"):
        with pytest.raises(TaskError, match="not a file of the repository"):
            apply_to_folder(tmp_path, diff({path: None}, {path: "x\n"}))
    assert (tmp_path / "a.py").read_text() == "a\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "link.py"]


@given(TEXTS, TEXTS)
def test_gold_lines_are_lines_of_the_text_before(before: str, after: str) -> None:
    count = len(before.split("\n")) - before.endswith("\n") if before else 0
    for lines in gold_lines(diff({"m.py": before}, {"m.py": after})).values():
        assert lines
        assert lines <= set(range(1, max(count, 1) + 1))


def test_what_git_writes_is_understood(tmp_path: Path) -> None:
    """Renames, quoted names, an empty file: the forms that only git produces."""

    body = "".join(f"line {number}\n" for number in range(20))
    write_files(tmp_path, {"über.py": body, "gone.py": ""})
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "before")
    git(tmp_path, "mv", "über.py", "moved once.py")
    (tmp_path / "moved once.py").write_text(body.replace("line 7", "line seven"))
    git(tmp_path, "rm", "-q", "gone.py")
    git(tmp_path, "add", "-A")
    patch = git(tmp_path, "diff", "--cached", "-M") + "\n"
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


@pytest.mark.parametrize(
    ("files", "patch", "message"),
    [
        ({}, "just words\n", "not a unified diff"),
        ({}, "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n", "not a unified diff"),
        ({}, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "no file x"),
        ({"x": "b\n"}, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", r"x:1 should be 'a\\n' but is 'b\\n'"),
        ({"x": ""}, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "the end of the file"),
        ({"x": "a\n"}, "--- a/x\n+++ b/x\n@@ -7 +7 @@\n-a\n+b\n", "x has no line 7"),
        ({"x": ""}, f"{BINARY}delta 3\nKc$@<\n\n", "binary file x without its full content"),
        ({"x": ""}, "diff --git a/x b/x\nindex 1..2\nBinary files a/x and b/x differ\n", "binary file x without"),
        ({"x": ""}, f"{BINARY}literal 0\n\n", "a damaged binary file"),
        ({"x": ""}, f"{BINARY}literal 9\nE|\n\n", "a damaged binary file"),
        ({"x": ""}, f"{BINARY}literal 9\nHcmV?d00001\n\n", "its content is not 9 bytes long"),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(files: dict[str, str], patch: str, message: str) -> None:
    with pytest.raises(TaskError, match=message):
        apply_patch(files, patch)


# --- made by us, applied by git

Changes = dict[str, tuple[bytes | None, bytes | None]]

LINK = "120000"
CONTENT = (
    st.none()
    | st.builds(GitBlob, TEXTS.map(str.encode) | st.binary(max_size=300), st.sampled_from(["100644", "100755"]))
    | st.builds(GitBlob, st.sampled_from([b"a.py", b"dir", b"caf\xc3\xa9", b"no where"]), st.just(LINK))
)
ODD = ["with space.txt", "caf\u00e9.py", 'quo"te', "tab\there", "back\\slash", "new\nline", "\udcff.bin"]
NAMES = st.sampled_from(["a.py", "dir", "dir/b.py", *ODD])


def apply(changes: Changes, patch: str) -> Changes:
    """What `git apply` leaves, beside what it should."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        for path, (before, _) in changes.items():
            if before is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                lay(folder / path, before)
        argv = ["git", "-c", "core.autocrlf=false", "apply", "--whitespace=nowarn", "-"]
        subprocess.run(argv, cwd=folder, input=patch.encode(), check=True, capture_output=True)
        return {path: (before, found(folder / path)) for path, (before, _) in changes.items()}


def lay(path: Path, side: bytes) -> None:
    mode = getattr(side, "mode", "100644")
    if mode == LINK:
        path.symlink_to(os.fsdecode(side))
    else:
        path.write_bytes(side)
        path.chmod(int(mode[-3:], 8))


def found(path: Path) -> GitBlob | None:
    if path.is_symlink():
        return GitBlob(os.fsencode(path.readlink()), LINK)
    return GitBlob(path.read_bytes(), f"100{path.stat().st_mode & 0o777:o}") if path.is_file() else None


def as_git_sees(changes: Changes) -> dict[str, list[tuple[str, bytes] | None]]:
    return {
        path: [None if side is None else (getattr(side, "mode", ""), side) for side in sides]
        for path, sides in changes.items()
    }


@settings(max_examples=200)
@given(st.dictionaries(NAMES, st.tuples(CONTENT, CONTENT), min_size=1, max_size=4))
def test_git_applies_what_we_write(changes: Changes) -> None:
    """Contents, modes and links; files and links in the place of folders."""
    for sides in zip(*(changes.get(path, (None, None)) for path in ("dir", "dir/b.py")), strict=True):
        assume(None in sides)
    patch = make_patch(changes)
    assert as_git_sees(apply(changes, patch) if patch else changes) == as_git_sees(changes)


def test_a_change_reads_as_git_writes_it() -> None:
    before = b"one\ntwo\nthree\n"
    assert make_patch({"f.py": (before, b"one\n2\nthree")}) == (
        "diff --git a/f.py b/f.py\nindex 4cb29ea..a623a0b 100644\n--- a/f.py\n+++ b/f.py\n@@ -1,3 +1,3 @@\n"
        " one\n-two\n-three\n+2\n+three\n\\ No newline at end of file\n"
    )


# --- applied in a sandbox

FILES = {"a b.py": b"one\r\ntwo\r\n", "gone.py": b"x\n", "gr\u00f6\u00dfe.bin": bytes(range(256))}


@pytest.fixture(params=["with git", "without git"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sandbox]:
    nothing = {} if request.param == "with git" else {"PATH": "/nowhere"}
    task = folder_task(tmp_path, FILES)
    with open_sandbox(task, SandboxConfig(kind="local", unsafe=True, env=nothing), trusted=True) as opened:
        yield opened


def test_every_kind_of_change_is_laid(sandbox: Sandbox) -> None:
    after = {"a b.py": b"one\r\n2\r\n", "gone.py": None, "gr\u00f6\u00dfe.bin": b"\0\1", "new/c d.py": b"y\n"}
    clean = sandbox.snapshot()
    apply_to_sandbox(sandbox, make_patch({path: (FILES.get(path), now) for path, now in after.items()}), "calc", clean)
    assert {entry.path for entry in sandbox.walk() if entry.kind == "file"} == {path for path in after if after[path]}
    for path, data in after.items():
        assert data is None or sandbox.read_file(path) == data
    apply_to_sandbox(sandbox, "", "calc", clean)


def test_modes_are_laid_and_links_take_git(sandbox: Sandbox) -> None:
    clean = sandbox.snapshot()
    programs = {"gone.py": GitBlob(FILES["gone.py"], "100755"), "run.sh": GitBlob(b"", "100755")}
    after = {**programs, "a b.py": GitBlob(b"1\n")}
    apply_to_sandbox(sandbox, make_patch({path: (FILES.get(path), now) for path, now in after.items()}), "calc", clean)
    assert as_git_sees(sandbox.changes(clean)) == as_git_sees(
        {path: (GitBlob(FILES[path]) if path in FILES else None, now) for path, now in after.items()}
    )
    sandbox.restore(clean)
    patch = make_patch({"link": (None, GitBlob(b"gone.py", "120000"))})
    if sandbox.environment["PATH"] != "/nowhere":
        apply_to_sandbox(sandbox, patch, "calc", clean)
        assert sandbox.real_path("link") == "gone.py"
    else:
        with pytest.raises(TaskError, match="task calc: the patch changes the link link"):
            apply_to_sandbox(sandbox, patch, "calc", clean)


@pytest.mark.parametrize(
    "patch",
    [
        make_patch({"a b.py": (b"other\n", b"text\n")}),
        make_patch({"missing.py": (b"other\n", b"text\n")}),
        make_patch({"../out.py": (None, b"text\n")}),
        "I could not find it.\n",
    ],
)
def test_what_does_not_apply_names_the_task_and_changes_nothing(sandbox: Sandbox, patch: str) -> None:
    clean = sandbox.snapshot()
    with pytest.raises(TaskError, match="task calc: "):
        apply_to_sandbox(sandbox, patch, "calc", clean)
    assert sandbox.changes(clean) == {}
