"""Rows of SWE-bench as tasks: both schemas, both regimes, and rows that are not in order."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from gumshoe.env.diff import gold_lines, make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.judge import judge
from gumshoe.env.verifier.verifier import verified_task
from gumshoe.errors import TaskError
from gumshoe.records import ExecResult, Oracle, TestOutcome, TestRun

PATCH = make_patch({"calc.py": (b"def add(a, b):\n    return a - b\n", b"def add(a, b):\n    return a + b\n")})
TEST_PATCH = make_patch(
    {"tests/test_new.py": (None, b"def test_it():\n    pass\n"), "tests/data.txt": (None, b"one\xe2\x80\xa8line\n")}
)
CLASSIC: dict[str, Any] = {
    "repo": "owner/calc",
    "instance_id": "Owner__calc-7",
    "base_commit": "abc",
    "patch": PATCH,
    "test_patch": TEST_PATCH,
    "problem_statement": "add subtracts",
    "hints_text": "",
    "created_at": "2024-01-01",
    "version": "1.0",
    "FAIL_TO_PASS": '["tests/test_new.py::test_it"]',
    "PASS_TO_PASS": "[]",
    "environment_setup_commit": "abc",
}
FIVE: dict[str, Any] = {
    **CLASSIC,
    "FAIL_TO_PASS": ["tests/test_new.py::test_it"],
    "PASS_TO_PASS": [],
    "image": "local/calc:7",
    "log_parser": "parse_log_pytest",
    "eval_type": "pass_and_fail",
    "eval_script": "#!/bin/bash\n",
}


def written(folder: Path, *rows: dict[str, Any], name: str = "rows.jsonl") -> Path:
    path = folder / name
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.parquet"])
@pytest.mark.parametrize(
    ("row", "image"),
    [(CLASSIC, "swebench/sweb.eval.x86_64.owner_1776_calc-7:latest"), (FIVE, "local/calc:7")],
    ids=["classic", "5.x"],
)
def test_both_schemas_are_read_from_any_kind_of_file(
    row: dict[str, Any], image: str, name: str, tmp_path: Path
) -> None:
    ((task, oracle),) = load_tasks("swebench", path=written(tmp_path, row, name=name))
    assert (task.id, task.source, task.regime) == ("Owner__calc-7", "swebench", "issue")
    assert (task.workspace.image, task.workspace.workdir) == (image, "/testbed")
    assert oracle.fail_to_pass == ("tests/test_new.py::test_it",)
    assert gold_lines(oracle.gold_patch) == {"calc.py": {2}}


def test_in_the_issue_regime_nothing_tells_of_the_hidden_tests(tmp_path: Path) -> None:
    ((task, oracle),) = load_tasks(f"swebench:{written(tmp_path, CLASSIC)}")
    assert "test_new" not in task.model_dump_json()
    assert task.setup == ()
    assert "tests/test_new.py" in verified_task(task, oracle).entrypoint[-1]


def test_in_the_debug_regime_the_tests_are_there_and_read_only(tmp_path: Path) -> None:
    ((task, _),) = load_tasks("swebench", path=written(tmp_path, CLASSIC), regime="debug")
    assert task.regime == "debug"
    assert task.entrypoint == ("python", "-m", "pytest", "-q", "tests/test_new.py")
    assert task.readonly == ("/tests/data.txt", "/tests/test_new.py")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for command in task.setup:
        subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "tests" / "test_new.py").read_text() == "def test_it():\n    pass\n"


@pytest.mark.parametrize(
    ("repo", "ending"),
    [
        ("django/django", ("--parallel", "1", "test_new")),
        ("sympy/sympy", ("bin/test", "-C", "--verbose", "tests/test_new.py")),
    ],
)
def test_some_repositories_have_a_runner_of_their_own(repo: str, ending: tuple[str, ...], tmp_path: Path) -> None:
    ((task, _),) = load_tasks("swebench", path=written(tmp_path, {**CLASSIC, "repo": repo}), regime="debug")
    assert task.entrypoint[-len(ending) :] == ending


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"patch": None}, "task Owner__calc-7: column patch is missing"),
        ({"instance_id": None}, "row 1: column instance_id is missing"),
        ({"repo": 3}, "task Owner__calc-7: column repo is not a string"),
        ({"patch": "words"}, "task Owner__calc-7: the patch is not a unified diff"),
        ({"FAIL_TO_PASS": "oops"}, "task Owner__calc-7: column FAIL_TO_PASS is not a list of test ids"),
        ({"PASS_TO_PASS": "[1]"}, "task Owner__calc-7: column PASS_TO_PASS is not a list of test ids"),
        ({"image": 3}, "entry 1 is not a task: image: Input should be a valid string"),
        ({"instance_id": ""}, "entry 1 is not a task: id: "),
    ],
)
def test_a_row_that_is_not_in_order_names_its_task(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError) as caught:
        load_tasks("swebench", path=written(tmp_path, {**CLASSIC, **change}))
    assert str(caught.value).startswith(message)


def test_a_source_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    def refused(message: str, **options: Any) -> None:
        with pytest.raises(TaskError, match=message):
            load_tasks("swebench", **options)

    refused("no file .*gone.jsonl", path=tmp_path / "gone.jsonl")
    refused("is a folder", path=tmp_path)
    (tmp_path / "bad.jsonl").write_text("{oops\n")
    refused("bad.jsonl line 1: not JSON", path=tmp_path / "bad.jsonl")
    (tmp_path / "bad.parquet").write_text("no parquet")
    refused("bad.parquet cannot be read", path=tmp_path / "bad.parquet")
    (tmp_path / "list.jsonl").write_text("[1]\n")
    refused("line 1 is not a JSON object", path=tmp_path / "list.jsonl")


def test_ids_that_were_cut_short_match_by_what_they_begin() -> None:
    oracle = Oracle(task_id="x", gold_patch="", fail_to_pass=("t.py::a[select",))
    outcomes = tuple(TestOutcome(id=f"t.py::a[select {number}]", outcome="passed") for number in range(2))
    run = TestRun(result=ExecResult(exit_code=0, output="", duration_s=0), outcomes=outcomes)
    assert judge(run, oracle).resolved
    failed = (*outcomes, TestOutcome(id="t.py::a[select x]", outcome="failed"))
    assert not judge(run.model_copy(update={"outcomes": failed}), oracle).resolved
    assert not judge(run.model_copy(update={"outcomes": ()}), oracle).resolved


@pytest.mark.parametrize(
    "own",
    [
        {"docker_image": "set/calc:7", "install_config": {"test_cmd": "pytest -rA --color=no"}},
        {"image_name": "set/calc:7", "test_cmd": "pytest -rA --color=no"},
        {"docker_image": "set/calc:7", "test_cmds": ["pytest -rA --color=no"]},
    ],
    ids=["SWE-rebench", "SWE-Gym", "SWE-bench-Live"],
)
def test_a_row_with_an_image_and_a_test_command_of_its_own(own: dict[str, Any], tmp_path: Path) -> None:
    python_list = str(["tests/test_new.py::test_it[a'b]"])
    ((task, oracle),) = load_tasks("swebench", path=written(tmp_path, {**CLASSIC, **own, "FAIL_TO_PASS": python_list}))
    assert task.workspace.image == "set/calc:7"
    assert task.entrypoint == ("pytest", "-rA", "--color=no")
    assert verified_task(task, oracle).entrypoint == (*task.entrypoint, "tests/test_new.py")
    assert oracle.fail_to_pass == ("tests/test_new.py::test_it[a'b]",)
