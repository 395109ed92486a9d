"""The gate on source that the project's Python can parse, and the one that runs Gumshoe cannot."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.inside.verdict.trees import as_data
from gumshoe.env.verifier import verify
from gumshoe.env.verifier.gate_uses import uses_in_tree
from gumshoe.env.verifier.trees import parse_python, read_tree
from gumshoe.records import Limits, Oracle, WorkspaceSpec
from support.folder_tasks import folder_task, write_files
from support.pythons import find_pythons, make_environment
from support.tools.inside import program

NEWER = {12: "def same[T](one: T) -> T:\n    return one\n", 13: "def same[T = int](one: T) -> T:\n    return one\n"}
"""By the minor version of Python 3: syntax that it is the first to know."""
BUGGY = "def total(prices):\n    return sum(prices) + 1\n"
TEST = (
    "import unittest\n\nfrom shop import total\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_total(self):\n        self.assertEqual(total([5, 2]), 7)\n"
)
SOURCES = sorted(Path(subprocess.__file__).parent.glob("[a-c]*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_tree_comes_back_as_it_was(source: Path) -> None:
    own = parse_python(source.read_bytes())
    assert uses_in_tree(read_tree(json.dumps(as_data(own)).encode()), ()) == uses_in_tree(own, ())


@pytest.mark.parametrize("python", find_pythons(with_pytest=False), ids=lambda path: path.parent.parent.name)
def test_the_tree_of_another_python_says_the_same(python: Path, tmp_path: Path) -> None:
    source = b"""\
import gc, sys
from types import FunctionType as made
class Any:
    '''gc.get_objects'''
    def __eq__(self, other): return True
    def __ne__(self, other): return False
x = sys.modules[__name__], sys.modules["os"], b"/proc/self", "set" + "trace", -1.5j, ..., [][1:2, 3]
"""
    written = tmp_path / "tree.json"
    subprocess.run([str(python), *program("verdict.trees"), str(written)], input=source, check=True)
    assert uses_in_tree(read_tree(written.read_bytes()), ()) == uses_in_tree(parse_python(source), ())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"[1]", b'[["Name", {}]]', b'[["Module", {"body": {"node": 3}}]]'])
def test_what_is_no_tree_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting value|no syntax tree"):
        read_tree(data)


@pytest.mark.needs("bubblewrap")
def test_a_repair_in_newer_syntax_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    pythons = enumerate(find_pythons(with_pytest=False))
    names = {make_environment(python, f"{number:016}")[1]: f"{number:016}" for number, python in pythons}
    minor = max(names)
    if minor not in NEWER or minor <= sys.version_info[1]:
        pytest.skip("no Python here has newer syntax than this one")
    project = write_files(tmp_path / "project", {"shop.py": BUGGY, "test_shop.py": TEST})
    task = folder_task(
        project,
        workspace=WorkspaceSpec(path=str(project), environment=names[minor]),
        entrypoint=("python", "-m", "unittest", "-v"),
        limits=Limits(command_timeout_s=60.0),
    )
    clean = f"{NEWER[minor]}\n\n{BUGGY.replace('sum(prices) + 1', 'same(sum(prices))')}"
    oracle = Oracle(
        task_id="shop",
        gold_patch=make_patch({"shop.py": (BUGGY.encode(), clean.encode())}),
        fail_to_pass=("test_shop.Prices.test_total",),
    )
    config = SandboxConfig(kind="bubblewrap", packages=())
    verdict = verify(task, oracle, oracle.gold_patch, config, trusted=True)
    assert (verdict.resolved, verdict.unverifiable) == (True, ())
    looks = make_patch({"shop.py": (BUGGY.encode(), f"import gc\n\n{clean}".encode())})
    verdict = verify(task, oracle, looks, config, trusted=True)
    assert (verdict.withheld, verdict.unverifiable) == (True, ("shop.py:1: import gc — memory: gc",))
