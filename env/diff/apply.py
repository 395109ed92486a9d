"""Applies a unified diff to texts, to folders and to the files in a sandbox.

Texts and folders are patched in pure Python, strictly: every context line and every removed line must be exactly where
the diff says. A patch that has drifted is a broken task, and guessing where it belongs would hide that.

In a sandbox, the official harness's attempts are made in the same order. `git apply` knows binary files, modes, links
and renames, and tolerates lines that have moved. If the sandbox has no git, every line must match exactly.
"""

from __future__ import annotations

import copy
import posixpath
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from unidiff.patch import Hunk

from gumshoe.env.diff.parse import LINK, FilePatch, parse_patch, split_lines
from gumshoe.errors import PatchError, TaskError
from gumshoe.protocols import Sandbox
from gumshoe.records import ExecResult
from gumshoe.storage import write_atomic


def source_paths(patch: str) -> list[str]:
    """The files that must be known to apply `patch`, in its order. Raises TaskError."""
    return list(dict.fromkeys(file.source for file in parse_patch(patch) if file.source is not None))


def apply_patch(files: Mapping[str, str], patch: str) -> dict[str, str | None]:
    """The texts that `patch` changes, as it leaves them; None stands for a file that is deleted or renamed away.

    Args:
        files: path to text, at least of the files that the patch touches; line ends as they are in the file, bytes
            that are not UTF-8 as surrogate escapes, here and in what is returned.
        patch: a unified diff, plain or in git's format.

    Raises:
        TaskError: it is not a diff, does not fit the files, or has a binary file without its whole content.
    """
    changed: dict[str, str | None] = {}
    for file in parse_patch(patch):
        after = _after(file, {**files, **changed})
        if file.source is not None and file.source != file.target:
            changed[file.source] = None
        if file.target is not None:
            changed[file.target] = after
    return changed


def apply_to_folder(folder: Path, patch: str) -> list[str]:
    """Applies a patch to the files in `folder` and returns the paths that it has changed.

    No file is touched unless every part fits, and each is replaced in one step. Files keep their modes, but for what
    the patch says of who may execute them.

    Raises:
        TaskError: the files are not as the patch says, a path leads out of the folder, or the patch changes a link.
    """
    root = folder.resolve()
    files = parse_patch(patch)
    _refuse_links(root, files)
    sources = {file.source: _inside(root, file.source) for file in files if file.source is not None}
    before = {
        path: place.read_bytes().decode("utf-8", "surrogateescape")
        for path, place in sources.items()
        if place.is_file()
    }
    changed = apply_patch(before, patch)
    places = {path: _inside(root, path) for path in changed}
    parts = {file.target: file for file in files}
    # A file that is renamed keeps its mode, and may be removed before the new one is written.
    modes = {path: stat.S_IMODE(place.stat().st_mode) for path, place in places.items() if place.is_file()}
    for path, text in changed.items():
        place = places[path]
        if text is None:
            place.unlink()
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, text.encode("utf-8", "surrogateescape"))
        mode = modes.get(parts[path].source or path, stat.S_IMODE(place.stat().st_mode))
        place.chmod(_mode_after(parts[path], mode))
    return sorted(changed)


def _refuse_links(root: Path, files: Sequence[FilePatch]) -> None:
    """Raises TaskError for a patch that makes, changes or removes a link: the text of a link is where it leads to."""
    for file in files:
        for path in sorted(file.paths):
            if LINK in file.modes or (root / path).is_symlink():
                raise TaskError(f"the patch changes the link {path}: use `git apply` for such a patch")


def _mode_after(file: FilePatch, mode: int) -> int:
    """A file's mode once it is patched. As with git, whoever may read a program may execute it."""
    if not file.modes:
        return mode
    return mode | (mode & 0o444) >> 2 if int(file.modes[-1], 8) & 0o100 else mode & ~0o111


def _after(file: FilePatch, files: Mapping[str, str | None]) -> str:
    """The file's text once it is patched; meaningless for one that is deleted."""
    before = "" if file.source is None else files.get(file.source)
    if before is None:
        raise TaskError(f"the patch does not apply: there is no file {file.source}")
    if not file.binary:
        return apply_hunks(file, before)
    if file.content is None:
        name = file.target or file.source
        raise TaskError(f"the patch changes the binary file {name} without its full content: use git diff --binary")
    return file.content.decode("utf-8", "surrogateescape")


def apply_hunks(file: FilePatch, text: str) -> str:
    """`text`, a text file before the patch, with the hunks applied. Raises TaskError where they do not fit."""
    lines = split_lines(text)
    result: list[str] = []
    done = 0
    for hunk in file.hunks:
        # A hunk without source lines names the line that it comes after.
        start = hunk.source_start - (hunk.source_length > 0)
        if start < done or start > len(lines):
            raise TaskError(f"the patch does not apply: {file.source} has no line {hunk.source_start}")
        old, new = _side(hunk, "-"), _side(hunk, "+")
        for number, expected in enumerate(old, start=start):
            if number >= len(lines) or lines[number] != expected:
                found = repr(lines[number]) if number < len(lines) else "the end of the file"
                raise TaskError(
                    f"the patch does not apply: {file.source}:{number + 1} should be {expected!r} but is {found}"
                )
        result += lines[done:start] + new
        done = start + len(old)
    return "".join(result + lines[done:])


def relocate(file: FilePatch, text: str) -> FilePatch:
    """The patch of a text file with each hunk at the nearest place in `text` where it fits, as `patch` accepts it.

    A hunk that fits nowhere stays where it is. A gold patch may come from a commit some lines away.
    """
    lines = split_lines(text)
    hunks = [copy.deepcopy(hunk) for hunk in file.hunks]
    for hunk in hunks:
        offset = _offset(hunk, lines)
        hunk.source_start += offset
        hunk.target_start += offset
        for line in hunk:
            line.source_line_no = line.source_line_no and line.source_line_no + offset
            line.target_line_no = line.target_line_no and line.target_line_no + offset
    return replace(file, hunks=hunks)


def _offset(hunk: Hunk, lines: list[str]) -> int:
    old = _side(hunk, "-")
    start = hunk.source_start - (hunk.source_length > 0)
    fitting = (at - start for at in range(len(lines) - len(old) + 1) if old and lines[at : at + len(old)] == old)
    return min(fitting, key=abs, default=0)


def _side(hunk: Hunk, sign: str) -> list[str]:
    """The hunk's lines before (`-`) or after (`+`), each with its end: a marker takes the end of the line before it."""
    return [
        line.value.removesuffix("\n") if following is not None and following.line_type == "\\" else line.value
        for line, following in zip_longest(hunk, hunk[1:])
        if line.line_type in (" ", sign)
    ]


def _inside(root: Path, path: str) -> Path:
    place = (root / path).resolve()
    if not place.is_relative_to(root) or ".git" in place.relative_to(root).parts:
        raise TaskError(f"the patch changes {path}, which is not a file of the repository")
    return place


ATTEMPTS = (
    ("git", "apply", "--verbose", "-"),
    ("git", "apply", "--verbose", "--3way", "-"),
    ("git", "apply", "--verbose", "--reject", "-"),
    ("patch", "--batch", "--forward", "--fuzz=5", "-p1"),
)
APPLIED_ALREADY = ("git", "apply", "--check", "--reverse", "-")
NO_PROGRAM = 127
TIMEOUT_S = 120.0


def apply_to_sandbox(sandbox: Sandbox, patch: str, task_id: str, clean: str) -> None:
    """Applies a patch to the workspace.

    Args:
        clean: name of the snapshot that the workspace is at now; every attempt begins there.

    Raises:
        PatchError: it does not apply; the message names the task. The workspace is then in no particular state.
        TaskError: it changes links, and there is no git in the sandbox.
        SandboxError: the sandbox broke.
    """
    if not patch.strip():
        return
    last = _attempt(sandbox, ATTEMPTS[0], patch)
    if last.exit_code == NO_PROGRAM:
        _apply_exactly(sandbox, patch, task_id)
        return
    for attempt in ATTEMPTS[1:]:
        if last.exit_code == 0:
            return
        sandbox.restore(clean)
        last = _attempt(sandbox, attempt, patch)
    # Without going back first: `patch` may have put in what was missing, and have refused what was there already. So
    # its .rej and .orig files may stay.
    if last.exit_code != 0 and _attempt(sandbox, APPLIED_ALREADY, patch).exit_code != 0:
        sandbox.restore(clean)
        raise PatchError(f"task {task_id}: {_why(sandbox, patch, last)}")


def patched_texts(sandbox: Sandbox, patch: str) -> dict[str, str | None]:
    """The texts that a patch would leave behind, with None for files that it removes. Raises TaskError."""
    files = {path: text for path in source_paths(patch) if (text := _read(sandbox, path)) is not None}
    return apply_patch(files, patch)


def write_texts(sandbox: Sandbox, texts: dict[str, str | None]) -> None:
    """Writes and removes files, whatever is there."""
    for path, text in texts.items():
        if text is not None:
            sandbox.write_file(path, text.encode("utf-8", "surrogateescape"))
        elif _read(sandbox, path) is not None:
            sandbox.remove_file(path)


def _apply_exactly(sandbox: Sandbox, patch: str, task_id: str) -> None:
    """Applies a patch without git. Raises TaskError if it changes links, PatchError if it does not apply."""
    try:
        files = parse_patch(patch)
        linked = next((file.target or file.source for file in files if LINK in file.modes), None)
        if linked is None:
            write_texts(sandbox, patched_texts(sandbox, patch))
            for file in files:
                if file.target is not None and file.modes:
                    mode = int(file.modes[-1][-3:], 8)
                    sandbox.write_file(file.target, sandbox.read_file(file.target), mode=mode)
    except (TaskError, PermissionError, NotADirectoryError, IsADirectoryError) as error:
        raise PatchError(f"task {task_id}: {error}") from None
    if linked is not None:
        raise TaskError(f"task {task_id}: the patch changes the link {linked}, and there is no git in the sandbox")


def _attempt(sandbox: Sandbox, argv: tuple[str, ...], patch: str) -> ExecResult:
    """One attempt, isolated from a person's git settings and from a repository that the workspace may be in."""
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": posixpath.dirname(sandbox.root),
        "LC_ALL": "C",
    }
    words = (argv[0], "-c", "safe.directory=*", *argv[1:]) if argv[0] == "git" else argv
    data = patch.encode("utf-8", "surrogateescape")
    return sandbox.run(words, input=data, env=environment, timeout=TIMEOUT_S)


def _why(sandbox: Sandbox, patch: str, last: ExecResult) -> str:
    """What a person needs to know: where the text differs, else what the last program said."""
    try:
        patched_texts(sandbox, patch)
    except TaskError as error:
        return str(error)
    lines = last.output.strip().splitlines()[-1:] or [f"exit code {last.exit_code}"]
    return f"the patch does not apply: {lines[0]}"


def _read(sandbox: Sandbox, path: str) -> str | None:
    try:
        return sandbox.read_file(path).decode("utf-8", "surrogateescape")
    except OSError:
        return None
