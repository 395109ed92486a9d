"""The judge as a program of its own, driven as the sandbox drives it: one request in, lines of JSON out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.folder_tasks import write_files
from support.pythons import find_pythons
from support.tools.inside import program

CORE = """\
LIMIT = 3

def cut(items):
    kept = []
    for item in items:
        kept.append(item)
    return kept[:LIMIT]
"""
TESTS = """\
import subprocess
import sys

from shop.core import cut

def test_cut():
    print("noise")
    assert cut([1, 2, 3, 4]) == [1, 2, 3]

def test_process():
    code = "from shop.core import cut; assert cut([1, 2, 3, 4]) == [1, 2, 3]"
    subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.fixture
def project(no_plugins: None, tmp_path: Path) -> Path:
    files = {"shop/__init__.py": "", "shop/core.py": CORE, "test_shop.py": TESTS}
    root = write_files(tmp_path / "root", files)
    (root / "link.py").symlink_to("shop/core.py")
    return root


def asked(root: Path, *variants: tuple[str, str], python: str = sys.executable) -> list[dict[str, Any]]:
    """The lines that the judge writes for variants of core.py, each made by one replacement."""
    path = "shop/core.py"
    candidates = [
        {
            "id": str(number),
            "files": {path: CORE.replace(old, new)},
            "lines": {path: [CORE[: CORE.index(old)].count("\n") + 1]},
        }
        for number, (old, new) in enumerate(variants)
    ]
    request = {
        "root": str(root),
        "keep": str(root.parent / "keep"),
        "results": str(root.parent / "results"),
        "timeout_s": 60,
        "trace_factor": 1,
        "arguments": [],
        "memory_mb": 4096,
        "candidates": candidates,
    }
    argv = [python, *program("bugs.judge")]
    # The judge traces by itself: a coverage tool in its process would take that away.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    subprocess.run(argv, input=json.dumps(request).encode(), check=True, timeout=200, env=environment)
    return [json.loads(line) for line in (root.parent / "results").read_text().splitlines()]


def baseline(root: Path) -> dict[str, Any]:
    """What the judge keeps of the clean project."""
    return json.loads((root.parent / "keep" / "baseline.json").read_text())


def test_what_is_known_of_a_project_is_used_again_and_warnings_of_plugins_loaded_ahead_are_no_errors(
    project: Path,
) -> None:
    (project / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    first = asked(project)
    second, answer = asked(project, ("LIMIT = 3", "LIMIT = 2"))
    assert [second] == first
    assert answer["status"] == "killed"


def test_a_test_that_meets_the_bug_in_a_process_of_its_own_fails_too(project: Path) -> None:
    _, answer = asked(project, ("kept.append(item)", "kept.append(0)"))
    assert answer["outcomes"] == {"test_shop.py::test_cut": "failed", "test_shop.py::test_process": "failed"}


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring needs no such limit")
def test_a_test_that_only_calls_is_followed_no_longer_and_meets_every_bug_all_the_same(project: Path) -> None:
    """Following each of its calls would take six times as long as the test."""
    (project / "shop" / "more.py").write_text("def step(n):\n    return n + 1\n")
    test = "def test_{}():\n    from shop import core, more\n    {}\n    assert core.cut([5]) == [5]\n"
    calls = "for n in range(2_000_000):\n        more.step(n)"
    (project / "test_shop.py").write_text("\n\n".join([test.format("many", calls), test.format("few", "pass")]))
    _, answer = asked(project, ("kept.append(item)", "kept.append(0)"))
    assert baseline(project)["unfollowed"] == ["test_shop.py::test_many"]
    assert answer["outcomes"] == {"test_shop.py::test_many": "failed", "test_shop.py::test_few": "failed"}


@pytest.mark.parametrize("python", [str(path) for path in find_pythons(with_pytest=True)])
def test_a_loop_of_many_lines_counts_for_all_lines_of_its_function(project: Path, python: str) -> None:
    loop = "    for n in range(20_000):\n        if n == 19_999:\n            items = items[:1]\n    return items\n"
    (project / "shop" / "core.py").write_text(CORE.replace("    return kept[:LIMIT]\n", f"    items = kept\n{loop}"))
    (project / "test_shop.py").write_text(
        "from shop.core import cut\n\n\ndef test_cut():\n    assert cut([1, 2]) == [1]\n"
    )
    _, answer = asked(project, ("kept = []", "kept = [0]"), python=python)
    assert answer["status"] == "killed"
    last = len((project / "shop" / "core.py").read_text().splitlines()) - 1
    assert baseline(project)["covered"]["shop/core.py"][str(last)] == ["test_shop.py::test_cut"]


def test_messages_hold_no_addresses_also_shortened_ones(project: Path) -> None:
    one, two = (asked(project, ("append(item)", "append(object())"))[1]["failures"] for _ in range(2))
    assert "<object obje...0x...>" in one["test_shop.py::test_cut"]["message"]
    assert one == two


def test_what_tests_leave_behind_is_cleared_away(project: Path) -> None:
    """Files, folders in the place of files, links, byte code: every run finds the project as it was."""
    (project / "data").write_text("clean")
    leave = (
        "\n\ndef test_leave(tmp_path):\n    import os, pathlib\n    here = pathlib.Path(__file__).parent\n"
        "    assert (here / 'data').read_text() == 'clean'\n    (here / 'data').unlink()\n    (here / 'data').mkdir()\n"
        "    (here / 'new' / 'deep').mkdir(parents=True)\n    (here / 'new' / 'deep' / 'x').touch()\n"
        "    (here / 'link.py').unlink()\n    os.symlink('/', here / 'away')\n"
        "    text = 'import pathlib; (pathlib.Path(__file__).parents[1] / \"imported\").touch()'\n"
        "    (here / 'a_test.py').write_text(text)\n"
    )
    (project / "test_shop.py").write_text(TESTS + leave)
    clean, first, second = asked(project, ("LIMIT = 3", "LIMIT = 2"), ("LIMIT = 3", "LIMIT = 2"))
    assert clean["unstable"] == []
    assert first["outcomes"] == second["outcomes"]
    assert first["outcomes"]["test_shop.py::test_leave"] == "passed"
    assert not (project.parent / "imported").exists()


def test_a_failing_subtest_fails_its_test(project: Path) -> None:
    (project / "test_shop.py").write_text(
        "import unittest\n\nfrom shop.core import cut\n\n\nclass Cut(unittest.TestCase):\n    def test_cut(self):\n"
        "        for size in (1, 5):\n            with self.subTest(size=size):\n"
        "                self.assertEqual(len(cut([0] * size)), min(size, 3))\n"
    )
    clean, answer = asked(project, ("LIMIT = 3", "LIMIT = 2"))
    assert clean["outcomes"] == {"test_shop.py::Cut::test_cut": "passed"}
    assert answer["outcomes"] == {"test_shop.py::Cut::test_cut": "failed"}
