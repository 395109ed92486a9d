"""Rows of SWE-bench, SWE-smith and R2E-Gym as tasks, and names of tests. In containers: test_tasks_images."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import yaml
from swebench.task.repo import load_task_repo

from gumshoe.cli import main
from gumshoe.env.diff import apply_patch, gold_lines, make_patch
from gumshoe.env.harness_rows import harness_row, harness_rows
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.load import graded_task
from gumshoe.env.tasks.rows import FILES
from gumshoe.env.verifier import without_tests
from gumshoe.env.verifier.judge import NamedOutcomes, judge
from gumshoe.errors import TaskError
from gumshoe.records import ExecResult, Oracle, TestOutcome, TestRun
from support.folder_tasks import write_files

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
        ("swebench", CLASSIC, {"FAIL_TO_PASS": None}, "task Owner__calc-7: column FAIL_TO_PASS is missing"),
        ("swebench", CLASSIC, {"patch": "words"}, "task Owner__calc-7: the patch is not a unified diff"),
        ("swebench", CLASSIC, {"instance_id": None}, "row 1: column instance_id is missing"),
        ("swebench", CLASSIC, {"FAIL_TO_PASS": "oops"}, "column FAIL_TO_PASS is not a list of test ids"),
        ("swebench", CLASSIC, {"PASS_TO_PASS": "[1]"}, "column PASS_TO_PASS is not a list of test ids"),
        ("swebench", CLASSIC, {"image": 3}, "entry 1 is not a task: image: Input should be a valid string"),
        ("swebench", CLASSIC, {"instance_id": ""}, "entry 1 is not a task: id: "),
        ("swebench", CLASSIC, {"repo_language": "Go"}, "task Owner__calc-7: it is a task in Go"),
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


def test_the_command_goes_on_behind_a_broken_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, {**CLASSIC, "patch": None}, {**CLASSIC, "instance_id": "good"})
    assert main(["tasks", "list", f"swebench:{path}", "--json", "-o", "regime=debug"]) == 0
    shown = capsys.readouterr()
    assert [row["id"] for row in json.loads(shown.out)] == ["good"]
    assert "skipped: task Owner__calc-7: column patch is missing" in shown.err
    assert main(["tasks", "show", f"swebench:{path}", "good", "-o", "regime=debug"]) == 0
    assert "regime      debug" in capsys.readouterr().out
    path = written(tmp_path, {**CLASSIC, "patch": None})
    assert main(["tasks", "check", f"swebench:{path}", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["task_id"], found["passed"]) == ("Owner__calc-7", False)


def test_equal_tasks_have_equal_hashes_wherever_they_stand(tmp_path: Path) -> None:
    def loaded(folder: Path) -> str:
        ((task, _),) = load_tasks("local", path=folder)
        return task.hash

    here, there = (write_files(tmp_path / name / "shop", {"calc.py": "x = 1\n"}) for name in ("a", "b"))
    for folder in (here, there):
        (folder / "link").symlink_to("calc.py")
    write_files(there, {"__pycache__/calc.pyc": b"cache"})
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
    ids = ("t.py::test_a", "u.py::test_a", "t.py::test_p[a b]", "t.py::test_p[a[c]]")
    ids += ("auth.tests.Names.test_a", "t.py::TestB::test_c")
    outcomes = NamedOutcomes(TestOutcome(id=test, outcome="passed") for test in ids)
    assert [outcome.id for outcome in outcomes.of(name)] == found


# --- SWE-bench: both schemas, both regimes


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


def task_repository(folder: Path, **changes: Any) -> Path:
    script = "#!/bin/bash\n{0} Start Test Output'\npytest -rA --tb=no tests/test_new.py\n{0} End Test Output'\n"
    row = {**FIVE, "split": "test", "eval_script": script.format(": '>>>>>"), **changes}
    write_files(folder, {"sweb.yaml": "datasets: [owner/set]\nsplits: [test]\n"})
    files = {name: row.pop(column) for column, name in FILES.items()}
    tests = {column: row.pop(column) for column in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    files |= {"tests.json": json.dumps(tests), "task.yaml": yaml.safe_dump(row)}
    return write_files(folder / "tasks" / row["instance_id"], files)


def test_a_task_repository_is_read_as_the_harness_reads_it(tmp_path: Path) -> None:
    place = task_repository(tmp_path)
    task_repository(tmp_path, instance_id="old-1", split="deprecated")
    ((task, oracle),) = load_tasks(f"swebench:{tmp_path}", regime="debug")
    assert task.workspace.image == "local/calc:7"
    assert task.entrypoint == ("pytest", "-rA", "--tb=no", "tests/test_new.py")
    assert graded_task(task, oracle).entrypoint == task.entrypoint
    row, _ = sorted(load_task_repo(tmp_path), key=lambda each: each["split"], reverse=True)
    assert load_tasks("swebench", path=written(tmp_path, row), regime="debug") == [(task, oracle)]
    with pytest.raises(TaskError, match="no task of the split dev; it has deprecated, test"):
        load_tasks("swebench", path=tmp_path, split="dev")
    (place / "tests.json").write_text("{")
    with pytest.raises(TaskError, match="task Owner__calc-7: column FAIL_TO_PASS is missing"):
        load_tasks("swebench", path=tmp_path)


def test_in_the_issue_regime_nothing_tells_of_the_hidden_tests(tmp_path: Path) -> None:
    ((task, oracle),) = load_tasks(f"swebench:{written(tmp_path, CLASSIC)}")
    assert "test_new" not in task.model_dump_json()
    assert task.setup == ()
    assert "tests/test_new.py" in graded_task(task, oracle).entrypoint[-1]
    more = make_patch({"tests/test_more.py": (None, b"\n")})
    mine = make_patch({"tests/test_new.py": (None, b"pass\n")}) + more
    assert without_tests(PATCH + mine, oracle) == PATCH + more  # of an agent that does not know them
    assert without_tests("", oracle) == ""


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


def test_a_source_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    write_files(tmp_path, {"bad.jsonl": "{oops\n", "bad.parquet": "no parquet", "list.jsonl": "[1]\n"})
    for name, message in {
        "gone.jsonl": "no file .*gone.jsonl",
        "": "is a folder",
        "bad.jsonl": "bad.jsonl line 1: not JSON",
        "bad.parquet": "bad.parquet cannot be read",
        "list.jsonl": "line 1 is not a JSON object",
    }.items():
        with pytest.raises(TaskError, match=message):
            load_tasks("swebench", path=tmp_path / name)
    with pytest.raises(TaskError, match="no regime 'both'"):
        load_tasks("swebench", path=tmp_path, regime="both")


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
    assert graded_task(task, oracle).entrypoint == (*task.entrypoint, "tests/test_new.py")
    assert oracle.fail_to_pass == ("tests/test_new.py::test_it[a'b]",)


def test_a_row_of_swe_bench_pro_names_its_image_by_a_tag(tmp_path: Path) -> None:
    row = {name.lower() if name in ("FAIL_TO_PASS", "PASS_TO_PASS") else name: value for name, value in CLASSIC.items()}
    path = written(tmp_path, {**row, "dockerhub_tag": "owner.calc-7", "repo_language": "python"})
    ((task, oracle),) = load_tasks("swebench", path=path)
    assert (task.workspace.image, task.workspace.workdir) == ("jefzda/sweap-images:owner.calc-7", "/app")
    assert oracle.fail_to_pass == ("tests/test_new.py::test_it",)


# --- classic rows, completed for the harness 5.x: examples checked by hand against swebench 4.1.0

SUB_PATCH = make_patch({"tests/sub/test_a.py": (b"x\n", b"y\n"), "tests/sub/data.json": (None, b"{}\n")})


DJANGO = "--verbosity 2 --settings=test_sqlite --parallel 1"
SAFE = "git config --global --add safe.directory /testbed"


def unfinished(repo: str, version: str, **columns: Any) -> dict[str, Any]:
    row = {"repo": repo, "version": version, "instance_id": f"{repo.replace('/', '__')}-1", "base_commit": "abc"}
    return {**row, "test_patch": SUB_PATCH, "FAIL_TO_PASS": "[]", "PASS_TO_PASS": "[]", **columns}


def lines_of(script: str) -> list[str]:
    return [line for line in script.splitlines() if line != ":"]


@pytest.mark.parametrize(
    ("repo", "version", "parser", "install", "command"),
    [
        ("pallets/flask", "2.3", "pytest", "-e .", "pytest -rA"),
        ("django/django", "4.2", "django", "-e .", f"./tests/runtests.py {DJANGO}"),
        ("matplotlib/matplotlib", "3.8", "matplotlib", '--no-build-isolation -e ".[dev]"', "pytest -rA"),
        ("sphinx-doc/sphinx", "7.2", "pytest_v2", "-e .[test]", "tox --current-env -epy39 -v --"),
    ],
)
def test_every_repository_has_its_own_way(repo: str, version: str, parser: str, install: str, command: str) -> None:
    row = harness_row(unfinished(repo, version))
    assert (row["log_parser"], row["eval_type"]) == (f"parse_log_{parser}", "pass_and_fail")
    script = lines_of(row["eval_script"])
    named = "sub.test_a" if parser == "django" else "tests/sub/test_a.py"
    assert script[script.index(": '>>>>> Start Test Output'") + 1] == f"{command} {named}"
    assert script[script.index(SAFE) + 1] == f"python -m pip install {install}"
    assert row["completed"] == "image, log_parser, eval_type, eval_script; tests are run as in swebench 4.1.0"


def test_commands_before_the_installation_are_kept() -> None:
    script = lines_of(harness_row(unfinished("django/django", "3.0"))["eval_script"])
    generated, *exported = script[script.index("cd /testbed") + 1 : script.index(SAFE)]
    assert "locale-gen" in generated
    assert exported == ["export LANG=en_US.UTF-8", "export LANGUAGE=en_US:en", "export LC_ALL=en_US.UTF-8"]


def test_what_a_row_brings_is_kept() -> None:
    given = unfinished("django/django", "unheard of", image="local/image", log_parser="p", eval_script="#!/bin/bash\n")
    assert harness_row(given) == {**given, "eval_type": "pass_and_fail", "completed": "eval_type"}


def test_rows_that_cannot_be_completed_are_refused_with_a_line_each() -> None:
    other_language = unfinished("redis/redis", "12", test_patch=make_patch({"tests/unit.tcl": (b"a\n", b"b\n")}))
    rows = [unfinished("psf/requests", "2.0"), unfinished("django/django", "9.9"), other_language, {"instance_id": "x"}]
    with pytest.raises(TaskError) as caught:
        harness_rows(rows)
    known = "and the row has no eval_script and log_parser: use rows made for harness 5.x"
    assert str(caught.value).splitlines() == [
        f"task django__django-1: it is not known how django/django runs its tests in version 9.9, {known}",
        f"task redis__redis-1: it is not known how redis/redis runs its tests in version 12, {known}",
        "task x: column repo is missing",
    ]
