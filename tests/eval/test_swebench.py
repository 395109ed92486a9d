"""The official harness: what `gumshoe grade` reads, refuses and completes, and exported rows that it judges."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.env.diff import make_patch
from gumshoe.env.harness_rows import harness_row
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.rows import read_rows
from gumshoe.errors import ConfigError, DatasetError, SandboxError
from gumshoe.eval.records import Prediction
from gumshoe.eval.swebench import read_predictions, run_evaluation, run_harness
from gumshoe.storage import write_jsonl
from support.shop_tasks import make_taskset

Capture = pytest.CaptureFixture[str]
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


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("preds.jsonl", lambda rows: "\n".join(map(json.dumps, rows))),
        ("list.json", json.dumps),
        ("mapping.json", lambda rows: json.dumps({row["instance_id"]: row for row in rows})),
    ],
)
def test_predictions_are_read_in_every_form(name: str, form: Callable[[Any], str], tmp_path: Path) -> None:
    rows = [{**ONE.model_dump(), "cost": 3}, {"instance_id": "b", "model_name_or_path": "m", "model_patch": None}]
    (tmp_path / name).write_text(form(rows))
    assert read_predictions(tmp_path / name) == [ONE, Prediction(instance_id="b", model_name_or_path="m")]


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
def test_a_row_whose_name_is_no_text_is_no_row(ours: bool, tmp_path: Path, capsys: Capture) -> None:
    write_jsonl(tmp_path / "preds.jsonl", [ONE])
    (tmp_path / "rows.json").write_text(json.dumps([{**ROW, "instance_id": ["owner__shop-1"]}]))
    command = ["grade", str(tmp_path / "preds.jsonl"), "--dataset", str(tmp_path / "rows.json")]
    assert main([*command, *(["--ours"] if ours else [])]) == 2
    error = capsys.readouterr().err
    assert ("row 1: column" if ours else "task owner__shop-1: there is a prediction for it, but no row") in error
    assert error.count("\n") == 1
    with pytest.raises(ConfigError, match="cannot be the name of a folder"):
        run_harness([ROW], [ONE], tmp_path, run_id="../elsewhere")


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
    [(1, "No such container", 2, False), (2, "No such container", 2, True), (1, "No such image", 1, True)],
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


def test_any_task_source_is_graded_by_our_own_grader(tmp_path: Path, capsys: Capture) -> None:
    """Tasks that come as folders need no container; a patch that does not apply names its task."""
    source = str(make_taskset(tmp_path / "shop", 2, runner="pytest"))
    (task, oracle), (other, _) = load_tasks(source)
    answers = {task.id: oracle.gold_patch, other.id: make_patch({"shop.py": (b"a\n", b"b\n")})}
    answered = [ONE.model_copy(update={"instance_id": name, "model_patch": patch}) for name, patch in answers.items()]
    write_jsonl(tmp_path / "preds.jsonl", answered)
    assert main(["grade", str(tmp_path / "preds.jsonl"), "--ours", "--tasks", source, "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["outcomes"] == {"shop/0": "resolved", "shop/1": "error"}
    assert "task shop/1: the patch does not apply: shop.py:1" in shown["shop/1"]


def export(tmp_path: Path, source: str, *options: str) -> tuple[int, Path]:
    out = tmp_path / "exported"
    return main(["tasks", "export", source, "--to", "swebench", "--out", str(out), *options]), out


@pytest.mark.needs("docker")
@pytest.mark.skipif(importlib.util.find_spec("swebench") is None, reason="needs the extra `swebench`")
def test_the_official_harness_judges_exported_rows(tmp_path: Path) -> None:
    """On images that are built from what is exported with the rows."""
    import docker

    cases = {"casebook-ledger": "casebook/ledger", "casebook-free-slots": "casebook/free_slots"}
    gold = {task.id: oracle.gold_patch for task, oracle in load_tasks("casebook", ids=list(cases.values()))}
    code, out = export(tmp_path, "casebook", "--base-image", "gumshoe-python:latest")
    assert code == 0
    rows = [row for row in read_rows(out / "rows.jsonl") if row["instance_id"] in cases]
    script = (out / "build.sh").read_text(encoding="utf-8")
    right, wrong = cases
    patches = {right: gold[cases[right]], wrong: "--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+x\n"}
    answers = [ONE.model_copy(update={"instance_id": name, "model_patch": patch}) for name, patch in patches.items()]
    with contextlib.closing(docker.from_env()) as client, contextlib.ExitStack() as stack:
        for row in rows:
            folder = f"images/{row['instance_id']}"
            assert f'docker build -t {row["image"]} "$(dirname "$0")"/{folder}\n' in script
            # The harness keeps containers open with a command that does not listen to the signal to stop.
            with (out / folder / "Dockerfile").open("a", encoding="utf-8") as file:
                file.write("STOPSIGNAL SIGKILL\n")
            client.images.build(path=str(out / folder), tag=row["image"], rm=True, network_mode="none")
            stack.callback(client.images.remove, row["image"], force=True)
        report = run_harness(rows, answers, tmp_path / "harness", workers=2)
    assert report.outcomes == {right: "resolved", wrong: "unresolved"}


def test_rows_are_completed_where_it_is_known_how_tests_are_run(tmp_path: Path, capfd: Capture) -> None:
    known = {**ROW, "problem_statement": "P", "version": "1", "patch": "", "FAIL_TO_PASS": '["tests/test_a.py::a"]'}
    rows = [known, {**known, "instance_id": "d__d-1", "repo": "django/django"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, out = export(tmp_path, f"swebench:{tmp_path / 'rows.jsonl'}")
    assert code == 0
    said = capfd.readouterr().err
    assert "left out: d__d-1: it is not known how django/django runs its tests in version 1, and" in said
    (row,) = read_rows(out / "rows.jsonl")
    kept = [name for name in known if "PASS" not in name]
    assert {name: row[name] for name in kept} == {name: known[name] for name in kept}
    assert "python -m pytest -rA " in row["eval_script"]
    assert not (out / "build.sh").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "check.py").write_text("assert 0\n", encoding="utf-8")
    code, _ = export(tmp_path / "mine", f"local:{tmp_path / 'mine'}", "-o", "entrypoint=python check.py")
    assert code == 2
    assert "and the harness needs one" in capfd.readouterr().err
