"""What `gumshoe grade` reads, refuses and completes, before anything is run. How it grades: test_verifier_parity."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.env.diff import make_patch
from gumshoe.env.harness_rows import harness_row
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, DatasetError, SandboxError, TaskError
from gumshoe.eval.swebench import Prediction, read_predictions, run_evaluation, run_harness
from gumshoe.storage import write_jsonl
from support.shop_tasks import make_taskset

ONE = Prediction(instance_id="owner__shop-1", model_name_or_path="m", model_patch="p")
OLD, NEW = b"def test_a():\n    assert 0\n", b"def test_a():\n    assert 1\n"
ROW: dict[str, Any] = {
    "repo": "owner/shop",
    "instance_id": "owner__shop-1",
    "base_commit": "HEAD",
    "test_patch": make_patch({"tests/test_a.py": (OLD, NEW), "tests/new one.py": (None, b"x = 1\n")}),
    "FAIL_TO_PASS": "[]",
    "PASS_TO_PASS": "[]",
}


@pytest.mark.parametrize("name", ["preds.jsonl", "list.json", "mapping.json"])
def test_predictions_are_read_in_every_form(name: str, tmp_path: Path) -> None:
    rows = [{**ONE.model_dump(), "cost": 3}, {"instance_id": "b", "model_name_or_path": "m", "model_patch": None}]
    path = tmp_path / name
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows))
    else:
        path.write_text(json.dumps(rows if name == "list.json" else {row["instance_id"]: row for row in rows}))
    assert read_predictions(path) == [ONE, Prediction(instance_id="b", model_name_or_path="m")]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("p.jsonl", "", "holds no predictions"),
        ("p.jsonl", "{oops", "line 1: not JSON"),
        ("p.jsonl", "[1]", "line 1 is not a JSON object"),
        ("p.jsonl", '{"instance_id": "a"}', "prediction 1: model_name_or_path: Field required"),
        ("p.jsonl", f"{ONE.model_dump_json()}\n{ONE.model_dump_json()}", "two predictions for owner__shop-1"),
        ("p.json", "3", "must hold a list of predictions"),
        ("p.txt", "", "a .jsonl or .json file"),
    ],
)
def test_predictions_that_are_not_in_order_are_refused(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DatasetError, match=message):
        read_predictions(tmp_path / name)


@pytest.mark.parametrize("ours", [False, True])
def test_a_row_whose_name_is_no_text_is_no_row(ours: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_jsonl(tmp_path / "preds.jsonl", [ONE])
    (tmp_path / "rows.json").write_text(json.dumps([{**ROW, "instance_id": ["owner__shop-1"]}]))
    command = ["grade", str(tmp_path / "preds.jsonl"), "--dataset", str(tmp_path / "rows.json")]
    assert main([*command, *(["--ours"] if ours else [])]) == 2
    error = capsys.readouterr().err
    assert ("row 1: column" if ours else "task owner__shop-1: there is a prediction for it, but no row") in error
    assert error.count("\n") == 1


def test_a_classic_row_is_completed_where_pytest_runs_the_tests(tmp_path: Path) -> None:
    """The script is run here on a repository of its own: it leaves the tests as the commit has them."""
    row = harness_row(ROW)
    assert row["image"] == "swebench/sweb.eval.x86_64.owner_1776_shop-1:latest"
    assert (row["log_parser"], row["eval_type"]) == ("parse_log_pytest", "pass_and_fail")
    repo = tmp_path / "repo"
    (repo / "tests").mkdir(parents=True)
    (repo / "tests" / "test_a.py").write_bytes(OLD)
    commit = "git init -q && git add -A && git -c user.name=t -c user.email=t@t commit -qm base"
    subprocess.run(["bash", "-c", commit], cwd=repo, check=True)
    (repo / "tests" / "test_a.py").write_text("# made easy\n")
    (repo / "tests" / "new one.py").write_text("# existing\n")
    script = row["eval_script"].replace("cd /testbed", f"cd '{repo}'").replace("git config --global", "git config")
    path = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    shown = subprocess.run(["bash", "-c", script], cwd=repo, env=path, capture_output=True, text=True, check=True)
    assert "PASSED tests/test_a.py::test_a" in shown.stdout
    assert (repo / "tests" / "test_a.py").read_bytes() == OLD
    assert not (repo / "tests" / "new one.py").exists()


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="task owner__shop-1: there is a prediction for it, but no row"):
        run_harness([], [ONE], tmp_path)
    with pytest.raises(ConfigError, match="cannot be the name of a folder"):
        run_harness([ROW], [ONE], tmp_path, run_id="../elsewhere")


HARNESS = """
import sys
with open("runs", "a+") as file:
    file.write(".")
    file.seek(0)
    runs = len(file.read())
if runs <= {failing}:
    sys.exit('404 Client Error: Not Found ("{message}: 12ab")')
"""


@pytest.mark.parametrize(
    ("failing", "message", "runs", "fails"),
    [
        (1, "No such container", 2, False),
        (2, "No such container", 2, True),
        (1, "No such image", 1, True),
    ],
)
def test_a_harness_that_missed_a_container_is_run_once_more(
    tmp_path: Path, failing: int, message: str, runs: int, fails: bool
) -> None:
    """Python takes the package `swebench` in the folder in which the harness is run."""
    package = tmp_path / "swebench" / "harness"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "run_evaluation.py").write_text(HARNESS.format(failing=failing, message=message))
    failure = pytest.raises(SandboxError, match=f"exit code 1: 404 .*{message}: 12ab")
    with failure if fails else nullcontext():
        run_evaluation(tmp_path, "run", 1, 10, lambda line: None)
    assert (tmp_path / "runs").read_text() == "." * runs


def test_any_task_source_is_graded_by_our_own_grader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tasks that come as folders need no container; a patch that does not apply names its task."""
    source = str(make_taskset(tmp_path / "shop", 2, runner="pytest"))
    (task, oracle), (other, _) = load_tasks(source)
    answers = {task.id: oracle.gold_patch, other.id: make_patch({"shop.py": (b"a\n", b"b\n")})}
    predictions = [
        Prediction(instance_id=name, model_name_or_path="m", model_patch=patch) for name, patch in answers.items()
    ]
    write_jsonl(tmp_path / "preds.jsonl", predictions)
    assert main(["grade", str(tmp_path / "preds.jsonl"), "--ours", "--tasks", source, "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["outcomes"] == {"shop/0": "resolved", "shop/1": "error"}
    assert "task shop/1: the patch does not apply: shop.py:1" in shown["shop/1"]
