"""One name, one meaning: what the code calls things."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

FOLDERS = ("collect", "env", "eval", "src/gumshoe/records", "tools", "train")
CONTRACTS = {"Episode", "Request", "Session", "Workspace"}
"""Protocols, and the classes that fulfill them."""


def test_no_two_public_classes_have_one_name(root: Path):
    found = defaultdict[str, list[str]](list)
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    for path in [*paths, root / "src" / "gumshoe" / "protocols.py"]:
        if "casebook" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path.relative_to(root)))
    assert {name: where for name, where in found.items() if len(where) > 1 and name not in CONTRACTS} == {}
