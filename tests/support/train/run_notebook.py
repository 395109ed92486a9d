"""Runs a notebook in the current folder: `python run_notebook.py NOTEBOOK [OUT]`; OUT gets it with its outputs."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

CELL_TIMEOUT_S = 200


def main(source: str, out: str | None = None) -> None:
    notebook = nbformat.read(source, as_version=4)
    NotebookClient(notebook, timeout=CELL_TIMEOUT_S, record_timing=False).execute()
    if out is not None:
        notebook.metadata.pop("widgets", None)
        nbformat.write(notebook, Path(out))


main(*sys.argv[1:])
