"""A project may have an importer of its own, and a patch may change the file that it is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.verifier import verify
from gumshoe.env.verifier.check import check_task
from gumshoe.records import Oracle, Task

BOX = SandboxConfig(kind="bubblewrap")
BUILDER = """\
import importlib.abc
import sys
import other


class Builder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        return None


sys.meta_path.insert(0, Builder())


def total(prices):
    return sum(prices)
"""
BUGGY = BUILDER.replace("sum(prices)", "max(prices)")
TESTS = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
OTHER = "def helper():\n    return 1\n"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Task, Oracle]:
    for path, text in {"shop.py": BUILDER, "other.py": OTHER, "tests/test_shop.py": TESTS}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    task = Task(
        id="shop",
        source="synth",
        problem_statement="",
        workspace=workspace_from_folder(tmp_path, {"shop.py": BUGGY}),
        entrypoint=("python", "-m", "pytest", "-q"),
        readonly=("/tests/",),
    )
    return task, Oracle(task_id="shop", gold_patch=a_patch(BUILDER), fail_to_pass=("tests/test_shop.py::test_total",))


def a_patch(shop: str) -> str:
    return make_patch({"shop.py": (BUGGY.encode(), shop.encode())})


def test_a_bug_beside_the_projects_own_importer_is_a_task(pair: tuple[Task, Oracle]) -> None:
    assert check_task(*pair, BOX).problems == ()


def test_a_repair_in_other_words_of_a_file_with_an_importer_counts(pair: tuple[Task, Oracle]) -> None:
    verdict = verify(*pair, a_patch(BUILDER.replace("sum(prices)", "sum(list(prices))")), BOX, trusted=False)
    assert verdict.resolved
    assert verdict.tampering == ()
