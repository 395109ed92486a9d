"""Unified diffs: written from file contents, parsed, applied to texts, folders and sandboxes, and reversed."""

from gumshoe.env.diff.apply import (
    apply_hunks,
    apply_patch,
    apply_to_folder,
    apply_to_sandbox,
    patched_texts,
    relocate,
    source_paths,
    write_texts,
)
from gumshoe.env.diff.make import GitBlob, make_patch, reverse_patch
from gumshoe.env.diff.parse import drop_files, gold_lines, parse_patch, split_lines

__all__ = [
    "GitBlob",
    "apply_hunks",
    "apply_patch",
    "apply_to_folder",
    "apply_to_sandbox",
    "drop_files",
    "gold_lines",
    "make_patch",
    "parse_patch",
    "patched_texts",
    "relocate",
    "reverse_patch",
    "source_paths",
    "split_lines",
    "write_texts",
]
