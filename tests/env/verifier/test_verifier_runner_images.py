"""Images with the runners of Django and sympy: tasks are proven, and both graders say the same of the same patches."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier import grade_all
from gumshoe.env.verifier.check import check_task
from gumshoe.eval.swebench import Prediction, run_harness
from support.runner_projects import BUGGY, CLEAN, RUNNERS
from support.sandboxes.testbed_images import a_row, built_image

pytestmark = pytest.mark.needs("docker")

DOCKER = SandboxConfig(kind="docker", pull="never")
PROJECTS = {"django": ("django/django", "4.2"), "sympy": ("sympy/sympy", "1.6")}
TESTS = {"django": "tests/prices/tests.py", "sympy": "sympy/core/tests/test_shop.py"}
PARTIAL = BUGGY.replace(b"sum(prices) - 1", b"sum(prices) if prices else -1")
PATCHES = {
    "gold": (make_patch({"shop.py": (BUGGY, CLEAN)}), "resolved"),
    "partial": (make_patch({"shop.py": (BUGGY, PARTIAL)}), "unresolved"),
}


@pytest.fixture(scope="module", params=PROJECTS)
def rows(request: pytest.FixtureRequest) -> Generator[list[dict[str, Any]]]:
    """A row for each patch; its test patch brings the tests that fail."""
    project, _, failing, passing = RUNNERS[request.param]
    path, (repo, version) = TESTS[request.param], PROJECTS[request.param]
    after = project[path].encode()
    before = after.replace(b"assertEqual(total([2, 3]), 5)", b"assertTrue(total([2, 3]))")
    before = before.replace(b"total([2, 3]) == 5", b"total([2, 3])")
    files = {name: text.encode() for name, text in project.items()} | {"shop.py": BUGGY, path: before}
    with built_image(files) as image:
        yield [
            a_row(
                image,
                repo=repo,
                version=version,
                instance_id=f"shop-{name}",
                patch=PATCHES["gold"][0],
                test_patch=make_patch({path: (before, after)}),
                FAIL_TO_PASS=json.dumps(failing),
                PASS_TO_PASS=json.dumps(passing),
            )
            for name in PATCHES
        ]


@pytest.fixture
def path(rows: list[dict[str, Any]], tmp_path: Path) -> Path:
    """The rows as a file."""
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.mark.parametrize("regime", ["issue", "debug"])
def test_a_task_is_proven_in_both_regimes(path: Path, regime: str) -> None:
    assert check_task(*load_tasks("swebench", path=path, regime=regime)[0], DOCKER).problems == ()


def test_both_graders_agree(rows: list[dict[str, Any]], path: Path, tmp_path: Path) -> None:
    answers = [
        Prediction(instance_id=f"shop-{name}", model_name_or_path="m", model_patch=patch)
        for name, (patch, _) in PATCHES.items()
    ]
    report = run_harness(rows, answers, tmp_path / "harness", workers=4, timeout_s=120)
    work = [
        (task, oracle, PATCHES[task.id.removeprefix("shop-")][0])
        for task, oracle in load_tasks("swebench", path=path, regime="issue")
    ]
    grades = {found.task_id: found for found in grade_all(work, DOCKER, workers=2)}
    expected = {f"shop-{name}": outcome for name, (_, outcome) in PATCHES.items()}
    assert {name: found.outcome for name, found in grades.items()} == expected
    assert report.outcomes == expected
    partial = json.loads((report.logs / "m" / "shop-partial" / "report.json").read_text())["shop-partial"]
    status, ours = partial["tests_status"], grades["shop-partial"].verdict
    assert ours is not None
    assert status["FAIL_TO_PASS"]["failure"] == list(ours.failing_fail_to_pass) != []
    assert status["PASS_TO_PASS"]["failure"] == list(ours.failing_pass_to_pass) == []
