"""Rows of SWE-smith and R2E-Gym, rows that are not in order, and names of tests. In containers: test_tasks_images."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.env.diff import apply_patch, make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.judge import NamedOutcomes
from gumshoe.errors import TaskError
from gumshoe.records import TestOutcome

BUG = make_patch({"calc.py": (b"def add(a, b):\n    return a + b\n", b"def add(a, b):\n    return a - b\n")})
SMITH: dict[str, Any] = {
    "instance_id": "owner__calc.1234abcd.func__x1",
    "repo": "swesmith/owner__calc.1234abcd",
    "patch": BUG,
    "FAIL_TO_PASS": ["tests/test_calc.py::test_add"],
    "PASS_TO_PASS": [],
    "image_name": "swesmith.x86_64.owner__calc.1234abcd",
    "problem_statement": "",
}
R2E: dict[str, Any] = {
    "repo_name": "calc",
    "docker_image": "namanjain12/calc_final:0123",
    "commit_hash": "0123456789abcdef",
    "parsed_commit_content": json.dumps({"file_diffs": []}),
    "expected_output_json": '{"test_add": "PASSED"}',
    "problem_statement": "add subtracts",
}
BENCH: dict[str, Any] = {
    "repo": "owner/calc",
    "instance_id": "owner__calc-7",
    "base_commit": "abc",
    "patch": BUG,
    "test_patch": "",
    "problem_statement": "",
    "FAIL_TO_PASS": "[]",
    "PASS_TO_PASS": "[]",
}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("swesmith.x86_64.owner__calc.1234abcd", "jyangballin/swesmith.x86_64.owner_1776_calc.1234abcd:latest"),
        ("someone/swesmith.x86_64.owner_1776_calc.1234abcd", "someone/swesmith.x86_64.owner_1776_calc.1234abcd:latest"),
        ("registry:5000/calc:1", "registry:5000/calc:1"),
    ],
)
def test_images_go_by_the_names_that_the_hub_knows(name: str, image: str, tmp_path: Path) -> None:
    ((task, oracle),) = load_tasks("swesmith", path=written(tmp_path, {**SMITH, "image_name": name}))
    assert task.workspace.image == image
    buggy = {"calc.py": "def add(a, b):\n    return a - b\n"}
    assert apply_patch(buggy, oracle.gold_patch) == {"calc.py": "def add(a, b):\n    return a + b\n"}
    assert "tests/test_calc.py::test_add" in task.problem_statement


def test_without_a_statement_the_failing_tests_are_told(tmp_path: Path) -> None:
    row = {**SMITH, "FAIL_TO_PASS": [f"tests/test_calc.py::test_{number}" for number in range(8)]}
    ((task, _),) = load_tasks("swesmith", path=written(tmp_path, row))
    assert "and 3 more" in task.problem_statement


@pytest.mark.parametrize(
    ("source", "row", "change", "message"),
    [
        ("swesmith", SMITH, {"patch": None}, "task owner__calc.1234abcd.func__x1: column patch is missing"),
        ("swesmith", SMITH, {"patch": 3}, "column patch is not a string"),
        ("swesmith", SMITH, {"patch": "words"}, "task owner__calc.1234abcd.func__x1: the patch is not a unified diff"),
        ("swesmith", SMITH, {"FAIL_TO_PASS": []}, "column FAIL_TO_PASS names no test"),
        ("swesmith", SMITH, {"image_name": None}, "column image_name is missing"),
        ("swesmith", SMITH, {"project": "casebook:none"}, "task owner__calc.1234abcd.func__x1: no project"),
        ("swesmith", SMITH, {"project": "."}, "the project . is outside of"),
        ("r2egym", R2E, {"docker_image": None}, "row 1: column docker_image is missing"),
        ("r2egym", R2E, {"expected_output_json": "{"}, "task namanjain12/calc_final:0123: column expected_output_json"),
        ("r2egym", R2E, {"expected_output_json": "[]"}, "is not a mapping of tests to outcomes"),
        ("r2egym", R2E, {"expected_output_json": '{"a": "FAILED"}'}, "holds no test that passes"),
        ("r2egym", R2E, {"parsed_commit_content": "{}"}, "column parsed_commit_content lacks 'file_diffs'"),
        ("swebench", BENCH, {"FAIL_TO_PASS": None}, "task owner__calc-7: column FAIL_TO_PASS is missing"),
    ],
)
def test_a_row_that_is_not_in_order_names_its_task_and_the_others_go_on(
    source: str, row: dict[str, Any], change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = written(tmp_path, {**row, **change}, row)
    with pytest.raises(TaskError) as caught:
        load_tasks(source, path=path)
    assert message in str(caught.value)
    told: list[str] = []
    assert len(load_tasks(source, path=path, on_error=lambda error: told.append(str(error)))) == 1
    assert told == [str(caught.value)]


@pytest.mark.parametrize("source", ["swesmith", "r2egym", "swebench"])
def test_a_regime_that_is_none_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no regime 'both'"):
        load_tasks(source, path=written(tmp_path), regime="both")


def test_the_command_goes_on_behind_a_broken_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, {**BENCH, "patch": None}, {**BENCH, "instance_id": "good"})
    assert main(["tasks", "list", f"swebench:{path}", "--json", "-o", "regime=debug"]) == 0
    shown = capsys.readouterr()
    assert [row["id"] for row in json.loads(shown.out)] == ["good"]
    assert "skipped: task owner__calc-7: column patch is missing" in shown.err
    assert main(["tasks", "show", f"swebench:{path}", "good", "-o", "regime=debug"]) == 0
    assert "regime      debug" in capsys.readouterr().out
    path = written(tmp_path, {**BENCH, "patch": None})
    assert main(["tasks", "check", f"swebench:{path}", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["task_id"], found["passed"]) == ("owner__calc-7", False)


def test_equal_tasks_have_equal_hashes_wherever_they_stand(tmp_path: Path) -> None:
    def loaded(folder: Path) -> str:
        ((task, _),) = load_tasks("local", path=folder)
        return task.hash

    here, there = tmp_path / "a" / "shop", tmp_path / "b" / "shop"
    here.mkdir(parents=True)
    (here / "calc.py").write_text("x = 1\n")
    (here / "link").symlink_to("calc.py")
    (here / "__pycache__").mkdir()
    shutil.copytree(here, there, symlinks=True)
    (there / "__pycache__" / "calc.pyc").write_bytes(b"cache")
    before = loaded(here)
    assert loaded(there) == before
    (there / "calc.py").chmod(0o755)
    assert loaded(there) != before
    (there / "calc.py").chmod(0o644)
    (there / "calc.py").write_text("x = 2\n")
    assert loaded(there) != before


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("t.py::test_a", ["t.py::test_a"]),
        ("t.py::test_p[a", ["t.py::test_p[a b]", "t.py::test_p[a[c]]"]),
        ("t.py::test_p[a[", ["t.py::test_p[a[c]]"]),
        ("test_a (auth.tests.Names)", ["auth.tests.Names.test_a"]),
        ("TestB.test_c", ["t.py::TestB::test_c"]),
        ("test_a", ["t.py::test_a", "u.py::test_a"]),
        ("u.py::test_b", []),
        ("gone", []),
    ],
)
def test_the_names_that_published_lists_give_to_tests(name: str, found: list[str]) -> None:
    ids = (
        "t.py::test_a",
        "u.py::test_a",
        "t.py::test_p[a b]",
        "t.py::test_p[a[c]]",
        "auth.tests.Names.test_a",
        "t.py::TestB::test_c",
    )
    outcomes = NamedOutcomes(TestOutcome(id=test, outcome="passed") for test in ids)
    assert [outcome.id for outcome in outcomes.of(name)] == found
