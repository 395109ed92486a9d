"""A project's own importer is its own; whatever else a patch puts between Python and its files still counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.content import workspace_from_folder
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


def a_patch(shop: str, other: str = OTHER) -> str:
    changed = {"shop.py": (BUGGY.encode(), shop.encode()), "other.py": (OTHER.encode(), other.encode())}
    return make_patch({path: sides for path, sides in changed.items() if sides[0] != sides[1]})


def test_a_bug_beside_the_projects_own_importer_is_a_task(pair: tuple[Task, Oracle]) -> None:
    assert check_task(*pair, BOX).problems == ()


def test_an_importer_that_is_not_the_projects_still_counts(pair: tuple[Task, Oracle]) -> None:
    forged = BUILDER.replace("return None", "return target")
    verdict = verify(*pair, a_patch(forged), BOX, trusted=False)
    assert not verdict.resolved
    assert verdict.tampering == ("an importer was put in by /workspace/shop.py",)


def test_the_right_answer_does_not_cover_an_importer_in_another_file(pair: tuple[Task, Oracle]) -> None:
    forged = BUILDER.partition("def total")[0].replace("import other\n", "")
    verdict = verify(*pair, a_patch(BUILDER, forged), BOX, trusted=False)
    assert not verdict.resolved
    assert verdict.tampering == ("an importer was put in by /workspace/other.py",)


def test_a_repair_in_other_words_of_a_file_with_an_importer_is_not_believed(pair: tuple[Task, Oracle]) -> None:
    # The importer's file is then the patch's own, and nothing tells its code from a forged one.
    verdict = verify(*pair, a_patch(BUILDER.replace("sum(prices)", "sum(list(prices))")), BOX, trusted=False)
    assert verdict.tampering == ("an importer was put in by /workspace/shop.py",)
