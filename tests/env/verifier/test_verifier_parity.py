"""Our grader and the official harness say the same of the same patches, with pytest and other runners."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.harness_rows import harness_row
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier import grade_all
from gumshoe.env.verifier.check import check_task
from gumshoe.errors import SandboxError
from gumshoe.eval.records import Prediction
from gumshoe.eval.swebench import HarnessReport, run_harness
from gumshoe.storage import write_jsonl
from support.runner_projects import BUGGY, RUNNERS
from support.runner_projects import CLEAN as FIXED
from support.sandboxes.testbed_images import CLEAN, GOLD, OLD_TESTS, REPO, a_row, built_image

pytestmark = pytest.mark.needs("docker")

DOCKER = SandboxConfig(kind="docker", pull="never")
SHOP = REPO["shop.py"]
PARTIAL = SHOP.replace(b"    return n\n", b"    return 2 * n\n", 1)
MOVED = b"# A line that the repository does not have.\n" * 4 + SHOP
GREEN = OLD_TESTS.replace(b"double, same", b"double, same, triple") + (
    b"\n\ndef test_double():\n    pass\n\n\ndef test_triple():\n    pass\n"
)


def in_shop(after: bytes, before: bytes = SHOP) -> str:
    return make_patch({"shop.py": (before, after)})


EASY = make_patch({"tests/test_shop.py": (OLD_TESTS, GREEN)})
PATCHES = {
    "gold": (GOLD, "resolved"),
    "empty": ("", "empty"),
    "partial": (in_shop(PARTIAL), "unresolved"),
    "breaks-another": (in_shop(CLEAN.replace(b"    return n\n", b"    return 0\n")), "unresolved"),
    "moved-lines": (in_shop(MOVED.replace(SHOP, CLEAN), MOVED), "resolved"),
    "does-not-apply": (in_shop(b"entirely\n", b"something else\n"), "error"),
    "no-diff": ("I could not find it.\n", "error"),
    "syntax-error": (in_shop(b"def double(\n"), "unresolved"),
    "tests-made-easy": (EASY, "unresolved"),
    "gold-and-tests": (GOLD + EASY, "resolved"),
    "binary-and-new": (
        make_patch(
            {
                "shop.py": (SHOP, CLEAN),
                "new/gr\u00f6\u00dfe 2.txt": (None, b"new\n"),
                "blob.bin": (REPO["blob.bin"], b"\0other\0"),
                "crlf.txt": (b"one\r\ntwo\r\n", b"one\r\n2\r\n"),
                "old.py": (b"x = 1\n", None),
            }
        ),
        "resolved",
    ),
}


Expected = dict[str, tuple[str, str]]
"""Patches and their outcomes, by name."""


def harness_report(rows: list[dict[str, Any]], expected: Expected, folder: Path) -> HarnessReport:
    """What the harness says of the patches; the rows and the patches are then in the folder."""
    predictions = [
        Prediction(instance_id=f"owner__shop-{name}", model_name_or_path="a/model", model_patch=patch)
        for name, (patch, _) in expected.items()
    ]
    write_jsonl(folder / "preds.jsonl", predictions)
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return run_harness(rows, predictions, folder, workers=4, timeout_s=120)


def check_agreement(report: HarnessReport, expected: Expected, folder: Path) -> None:
    """Both graders reach the expected outcomes, and see the same tests fail."""
    tasks = load_tasks("swebench", path=folder / "rows.jsonl", regime="issue")
    work = [(task, oracle, expected[task.id.removeprefix("owner__shop-")][0]) for task, oracle in tasks]
    grades = {found.task_id: found for found in grade_all(work, DOCKER, workers=2)}
    ours = {name: found.outcome for name, found in grades.items()}
    assert ours == {f"owner__shop-{name}": outcome for name, (_, outcome) in expected.items()}
    assert report.outcomes == ours
    for name, found in grades.items():
        assert found.outcome != "error" or name in found.explanation
    for name in (name for name, outcome in ours.items() if outcome in ("resolved", "unresolved")):
        found = json.loads((report.logs / "a__model" / name / "report.json").read_text())[name]["tests_status"]
        verdict = grades[name].verdict
        assert verdict is not None
        assert found["FAIL_TO_PASS"]["failure"] == list(verdict.failing_fail_to_pass)
        assert found["PASS_TO_PASS"]["failure"] == list(verdict.failing_pass_to_pass)


@pytest.fixture(scope="module")
def image() -> Generator[str]:
    with built_image() as name:
        yield name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("harness")


@pytest.fixture(scope="module")
def report(image: str, folder: Path) -> HarnessReport:
    rows = [a_row(image, instance_id=f"owner__shop-{name}") for name in PATCHES]
    return harness_report(rows, PATCHES, folder)


def test_both_graders_agree_on_every_patch(report: HarnessReport, folder: Path) -> None:
    check_agreement(report, PATCHES, folder)


def test_the_command_shows_the_report_and_runs_nothing_twice_and_grades_with_our_own_grader(
    report: HarnessReport, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["grade", str(folder / "preds.jsonl"), "--dataset", str(folder / "rows.jsonl"), "--out", str(folder)]
    assert main([*command, "--json", "--workers", "4", "--timeout", "120"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["outcomes"] == report.outcomes
    assert "instances already run, skipping" in shown.err
    gold = Prediction(instance_id="owner__shop-gold", model_name_or_path="m", model_patch=GOLD)
    write_jsonl(folder / "gold.jsonl", [gold])
    assert main(["grade", str(folder / "gold.jsonl"), "--ours", "--dataset", str(folder / "rows.jsonl")]) == 0
    assert "1 resolved, 0 unresolved, 0 withheld, 0 empty, 0 error of 1" in capsys.readouterr().out


def test_a_harness_that_fails_says_why(image: str, tmp_path: Path) -> None:
    row = {**harness_row(a_row(image)), "PASS_TO_PASS": "oops"}
    answer = Prediction(instance_id="owner__shop-1", model_name_or_path="m", model_patch=GOLD)
    with pytest.raises(
        SandboxError, match=r"the harness ended with exit code 1: .*JSONDecodeError.* \(see .*harness.log"
    ):
        run_harness([row], [answer], tmp_path)


# --- images with the runners of Django and sympy

RUN_BY = {
    "django": ("django/django", "4.2", "tests/prices/tests.py"),
    "sympy": ("sympy/sympy", "1.6", "sympy/core/tests/test_shop.py"),
}
"""The repository whose tests are run so, its version, and the file of the tests."""


@pytest.mark.parametrize("runner", RUN_BY)
def test_tasks_with_other_runners_are_proven_and_both_graders_agree(runner: str, tmp_path: Path) -> None:
    project, _, failing, passing = RUNNERS[runner]
    repo, version, path = RUN_BY[runner]
    after = project[path].encode()
    before = after.replace(b"assertEqual(total([2, 3]), 5)", b"assertTrue(total([2, 3]))")
    before = before.replace(b"total([2, 3]) == 5", b"total([2, 3])")
    files = {name: text.encode() for name, text in project.items()} | {"shop.py": BUGGY, path: before}
    partial = BUGGY.replace(b"sum(prices) - 1", b"sum(prices) if prices else -1")
    gold = make_patch({"shop.py": (BUGGY, FIXED)})
    expected = {"gold": (gold, "resolved"), "partial": (make_patch({"shop.py": (BUGGY, partial)}), "unresolved")}
    columns: dict[str, Any] = {
        "repo": repo,
        "version": version,
        "patch": gold,
        "test_patch": make_patch({path: (before, after)}),
        "FAIL_TO_PASS": json.dumps(failing),
        "PASS_TO_PASS": json.dumps(passing),
    }
    with built_image(files) as image:
        rows = [a_row(image, instance_id=f"owner__shop-{name}", **columns) for name in expected]
        check_agreement(harness_report(rows, expected, tmp_path), expected, tmp_path)
        for regime in ("issue", "debug"):
            pair = load_tasks("swebench", path=tmp_path / "rows.jsonl", regime=regime)[0]
            assert check_task(*pair, DOCKER).problems == ()
