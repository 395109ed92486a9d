"""Reading task sources: the casebook and task sets on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env.commands.tasks import EXAMPLES
from gumshoe.env.diff import apply_patch, gold_lines, make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.load import SOURCES
from gumshoe.env.tasks.taskset import load_taskset, write_taskset
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task, WorkspaceSpec


def a_task(name: str, path: str | None = "casebook:ledger", **tags: str) -> tuple[Task, Oracle]:
    workspace = WorkspaceSpec(path=path, image=None if path else "python:3", overlay={"naïve.py": "x = 1\r\n"})
    task = Task(id=name, source="test", problem_statement="é", workspace=workspace, entrypoint=("true",), tags=tags)
    return task, Oracle(task_id=name, gold_patch="", fail_to_pass=("t",))


CLEAN, BUGGY = b"def add(a, b):\r\n    return a + b\r\n", b"def add(a, b):\r\n    return a - b\r\n"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    folder = tmp_path / "cases" / "one"
    (folder / "repo" / "tests").mkdir(parents=True)
    (folder / "repo" / "calc.py").write_bytes(CLEAN)
    (folder / "bug.patch").write_bytes(make_patch({"calc.py": (CLEAN, BUGGY)}).encode())
    (folder / "repo" / "tests" / "test_calc.py").write_text("def test_add(): ...\n")
    (folder / "case.yaml").write_text("title: Wrong\nproblem_statement: 2 + 2 is 0.\nfail_to_pass: [t]\n")
    return folder


def test_the_help_names_every_source() -> None:
    listed = EXAMPLES.partition("SOURCE is one of\n")[2].partition("\n\n")[0].splitlines()
    names = {line.split()[0].partition(":")[0] for line in listed}
    assert names == {*SOURCES, "FOLDER"} - {"synth"}  # which is the name of FOLDER where options are given


def test_a_case_is_read_as_it_stands(case: Path) -> None:
    ((task, oracle),) = load_tasks("casebook", path=case.parent)
    assert task.workspace.overlay == {"calc.py": "def add(a, b):\r\n    return a - b\r\n"}
    assert task.problem_statement == "Wrong\n\n2 + 2 is 0.\n"
    assert task.tags == {"project": "one"}
    assert gold_lines(oracle.gold_patch) == {"calc.py": {2}}


def test_a_case_may_add_a_file_that_the_repair_deletes(case: Path) -> None:
    patch = make_patch({"calc.py": (CLEAN, BUGGY), "shadow.py": (None, b"x = 1\n")})
    (case / "bug.patch").write_bytes(patch.encode())
    ((_, oracle),) = load_tasks("casebook", path=case.parent)
    assert (
        apply_patch({"shadow.py": "x = 1\n", "calc.py": "def add(a, b):\r\n    return a - b\r\n"}, oracle.gold_patch)[
            "shadow.py"
        ]
        is None
    )


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("repo/tests/test_calc.py", None, r".*repo has no tests"),
        ("bug.patch", b"", r".*bug\.patch changes nothing, so there is no bug"),
        ("bug.patch", None, r".*bug\.patch cannot be read"),
        ("repo/calc.py", BUGGY, r"the patch does not apply: calc\.py:2 "),
        ("repo/calc.py", b"\xff\xfe", r".*can't decode"),
        ("case.yaml", b"titel: Wrong\nproblem_statement: x\nfail_to_pass: [t]\n", r".*'titel'; did you mean 'title'"),
    ],
)
def test_a_case_that_is_not_in_order_is_refused(path: str, content: bytes | None, message: str, case: Path) -> None:
    if content is None:
        (case / path).unlink()
    else:
        (case / path).write_bytes(content)
    with pytest.raises(TaskError, match=f"case one: {message}"):
        load_tasks("casebook", path=case.parent)


def test_a_task_set_comes_back_as_it_was_written(tmp_path: Path) -> None:
    pairs = [a_task("b", path=None), a_task("a", path=None)]
    write_taskset(tmp_path, pairs)
    assert load_taskset(tmp_path) == pairs
    assert sorted(path.name for path in tmp_path.iterdir()) == ["oracles.jsonl", "tasks.jsonl"]
    assert "fail_to_pass" not in (tmp_path / "tasks.jsonl").read_text()


def test_projects_are_found_again_on_any_machine(tmp_path: Path) -> None:
    (tmp_path / "projects" / "mine").mkdir(parents=True)
    write_taskset(tmp_path, [a_task("a"), a_task("b", path="projects/mine")])
    (bundled, _), (own, _) = load_taskset(tmp_path)
    assert Path(str(bundled.workspace.path), "ledger").is_dir()
    assert own.workspace.path == str(tmp_path / "projects" / "mine")


def test_tasks_are_chosen_by_id_tag_and_number(tmp_path: Path) -> None:
    pairs = [a_task(name, split=split) for name, split in (("a", "train"), ("b", "heldout_bugs"), ("c", "train"))]
    write_taskset(tmp_path, pairs)

    def chosen(**filters: Any) -> list[str]:
        return [task.id for task, _ in load_tasks(str(tmp_path), **filters)]

    assert chosen() == ["a", "b", "c"]
    assert chosen(tags={"split": "train"}) == ["a", "c"]
    assert chosen(tags={"split": ["train", "heldout_bugs"]}, limit=2) == ["a", "b"]
    assert chosen(ids=["c", "b"]) == ["b", "c"]
    assert [task.id for task, _ in load_tasks("synth", path=tmp_path)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("casbook", {}, "no task source 'casbook': give aider, bugsinpy, casebook"),
        ("casebook", {"ids": ["casebook/none"]}, "casebook has no task 'casebook/none'"),
        ("casebook", {"folder": "x"}, r"unexpected keyword argument 'folder' \(its options: path\)"),
        ("synth", {}, "missing a required argument: 'path'"),
        (".", {}, "is not a task set: it has no tasks.jsonl"),
    ],
)
def test_a_wrong_source_ends_in_one_clear_line(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        load_tasks(source, **options)
    assert "\n" not in str(caught.value)


def test_a_damaged_task_set_names_the_place(tmp_path: Path) -> None:
    tasks, oracles = tmp_path / "tasks.jsonl", tmp_path / "oracles.jsonl"
    write_taskset(tmp_path, [a_task("a"), a_task("b")])
    good = tasks.read_text()

    def refused(message: str) -> None:
        with pytest.raises(TaskError, match=message):
            load_taskset(tmp_path)

    tasks.write_text(good + "{oops\n")
    refused(r"tasks.jsonl line 3: Invalid JSON")
    tasks.write_text(good + json.dumps({"id": "c", "source": "x"}) + "\n")
    refused(r"tasks.jsonl line 3: problem_statement: Field required")
    tasks.write_text(good + good)
    refused("holds task a twice")
    tasks.write_text(good.replace("casebook:ledger", "casebook:gone"))
    refused("task a: no project casebook:gone")
    tasks.write_text(good)
    oracles.write_text(oracles.read_text().splitlines()[0] + "\n")
    refused("has no oracle for task b")
    oracles.unlink()
    refused(r"no file .*oracles.jsonl")
