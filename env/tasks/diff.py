"""Makes unified diffs in git's format from texts."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from gumshoe.env.tasks.lines import split_lines

__all__ = ["make_patch"]


def make_patch(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> str:
    """The diff that turns `before` into `after`, files in order of their paths.

    Both map paths to texts; a path that is absent or None stands for a file that does not exist.
    """
    paths = sorted(before.keys() | after.keys())
    return "".join(line for path in paths for line in _file_diff(path, before.get(path), after.get(path)))


def _file_diff(path: str, before: str | None, after: str | None) -> Iterator[str]:
    if before == after:
        return
    yield f"diff --git a/{path} b/{path}\n"
    if before is None:
        yield "new file mode 100644\n"
    if after is None:
        yield "deleted file mode 100644\n"
    source = "/dev/null" if before is None else f"a/{path}"
    target = "/dev/null" if after is None else f"b/{path}"
    for line in difflib.unified_diff(split_lines(before or ""), split_lines(after or ""), source, target):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
