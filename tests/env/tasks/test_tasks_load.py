"""Reading task sources: the casebook, task sets on disk, and folders of the user's own."""

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from gumshoe.env.commands.tasks import EXAMPLES
from gumshoe.env.diff import apply_patch, apply_to_sandbox, gold_lines, make_patch
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.load import SOURCES
from gumshoe.env.tasks.taskset import load_taskset, write_taskset
from gumshoe.env.verifier.check import check_tasks
from gumshoe.env.workspace import Workspace
from gumshoe.errors import TaskError, ToolFailure
from gumshoe.records import Oracle, Task, WorkspaceSpec
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import CHEAPEST

needs_sandbox = pytest.mark.needs("bubblewrap")


def a_task(name: str, path: str | None = "casebook:ledger", **tags: str) -> tuple[Task, Oracle]:
    workspace = WorkspaceSpec(path=path, image=None if path else "python:3", overlay={"naïve.py": "x = 1\r\n"})
    task = folder_task(Path(), id=name, problem_statement="é", workspace=workspace, tags=tags)
    return task, Oracle(task_id=name, gold_patch="", fail_to_pass=("t",))


CLEAN, BUGGY = b"def add(a, b):\r\n    return a + b\r\n", b"def add(a, b):\r\n    return a - b\r\n"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    files = {
        "repo/calc.py": CLEAN,
        "repo/tests/test_calc.py": "def test_add(): ...\n",
        "bug.patch": make_patch({"calc.py": (CLEAN, BUGGY)}),
        "case.yaml": "title: Wrong\nproblem_statement: 2 + 2 is 0.\nfail_to_pass: [t]\n",
    }
    return write_files(tmp_path / "cases" / "one", files)


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
    assert apply_patch({"shadow.py": "x = 1\n", "calc.py": BUGGY.decode()}, oracle.gold_patch)["shadow.py"] is None


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
    # Projects are found again on any machine.
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


@pytest.fixture
def nightmares(tmp_path: Path) -> Path:
    """Two tasks as in debug-gym's mini_nightmare: one with a space and an accent in its name, one with CRLF files."""
    root = tmp_path / "nightmares"
    files = {
        "calc.py": "def double(n):\n    return n\n",
        "test.py": "from calc import double\n\ndef test_double():\n    assert double(2) == 4\n",
        ".debugignore": ".debugignore\n.debugreadonly\nnotes/\n",
        ".debugreadonly": "test.py\n",
        "notes/answer.txt": "n * 2\n",
    }
    for name, end in (("größe 1", "\n"), ("pandas_like", "\r\n")):
        write_files(root / name, {path: text.replace("\n", end) for path, text in files.items()})
    (root / ".git").mkdir()
    return root


@needs_sandbox
def test_folders_are_tasks_and_their_ignore_files_hold(nightmares: Path) -> None:
    tasks = load_tasks("nightmare", path=nightmares)
    assert [task.id for task, _ in tasks] == ["nightmare/größe 1", "nightmare/pandas_like"]
    assert [task for task, _ in load_tasks(f"nightmare:{nightmares}")] == [task for task, _ in tasks]
    ((one, oracle),) = load_tasks("nightmare", path=nightmares / "pandas_like")
    assert one == tasks[1][0]
    assert oracle.gold_patch == ""
    assert one.entrypoint[-1] == "test.py"
    assert [result.problems for result in check_tasks(tasks, CHEAPEST)] == [(), ()]
    task, _ = tasks[0]
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        workspace = Workspace(task, sandbox)
        assert {entry.path for entry in workspace.list()} == {"calc.py", "test.py"}
        with pytest.raises(ToolFailure, match="read-only"):
            workspace.write_text("test.py", "")


def test_a_repository_of_ones_own_is_one_task(tmp_path: Path) -> None:
    ((task, oracle),) = load_tasks(
        "local",
        path=tmp_path,
        entrypoint="pytest -x 'my tests'",
        debug_entrypoint=["python", "main.py"],
        setup=["pip --version"],
        ignore=["secret/"],
        readonly=["tests/"],
    )
    assert task.id == f"local/{tmp_path.name}"
    assert task.entrypoint == ("python", "-m", "pytest", "-x", "my tests")
    assert task.debug_entrypoint == ("python", "main.py")
    assert task.setup == (("pip", "--version"),)
    assert (task.ignore, task.readonly) == (("secret/",), ("tests/",))
    assert "python -m pytest -x 'my tests'` fails" in task.problem_statement
    assert oracle.task_id == task.id


@pytest.mark.parametrize("prefix", ["PYTHONPATH=src GREETING='good day'", "env PYTHONPATH=src 'GREETING=good day'"])
@needs_sandbox
def test_variables_before_the_entrypoint_hold_for_every_program(tmp_path: Path, prefix: str) -> None:
    tests = "import hello\ndef test_words():\n    assert hello.WORDS == 'good day'\n"
    write_files(tmp_path, {"src/hello.py": "import os\nWORDS = os.environ['GREETING']\n", "test_hello.py": tests})
    commands: dict[str, Any] = {"entrypoint": f"{prefix} pytest -q", "debug_entrypoint": "A=1 python x.py"}
    ((task, _),) = load_tasks("local", path=tmp_path, **commands)
    assert (task.entrypoint, task.debug_entrypoint) == (("python", "-m", "pytest", "-q"), ("python", "x.py"))
    assert "`env PYTHONPATH=src 'GREETING=good day' python -m pytest -q` fails" in task.problem_statement
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        assert sandbox.environment["A"] == "1"
        run = Workspace(task, sandbox).run_tests()
        assert [(outcome.id, outcome.outcome) for outcome in run.outcomes] == [("test_hello.py::test_words", "passed")]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("casbook", {}, "unknown task source 'casbook'; did you mean 'casebook'?"),
        ("casebook", {"ids": ["casebook/none"]}, "casebook has no task 'casebook/none'"),
        ("casebook", {"folder": "x"}, "unexpected keyword argument 'folder' (its options: path)"),
        ("synth", {}, "missing a required argument: 'path'"),
        (".", {}, "is not a task set: it has no tasks.jsonl"),
        ("local", {"path": ".", "entrypoint": "env A=1"}, "env A=1 only sets variables"),
        ("local", {"path": ".", "entrypoint": "A=1 x", "debug_entrypoint": "A=2 y"}, "set A differently"),
        ("local:/no/such/folder", {}, "no folder /no/such/folder"),
        ("local", {"path": ".", "entrypoint": "pytest 'x"}, 'entrypoint "pytest \'x" cannot be split into words'),
        ("local", {"path": ".", "entrypoint": ""}, "entrypoint is empty"),
        ("nightmare:/no/such/folder", {}, "no folder /no/such/folder"),
    ],
)
def test_wrong_options_end_in_one_clear_line(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_tasks(source, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_folders_without_tests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="holds no task folders"):
        load_tasks("nightmare", path=tmp_path)
    (tmp_path / "one").mkdir()
    with pytest.raises(TaskError, match=r"task nightmare/one: .* has no tests: add a test.py"):
        load_tasks("nightmare", path=tmp_path)


@needs_sandbox
def test_ignored_folders_of_packages_are_left_out_unless_a_command_names_them(tmp_path: Path) -> None:
    paths = (".gitignore", ".venv/bin/python", "web/node_modules/x/a.js", "venv/kept.py", "a.py")
    write_files(tmp_path, dict.fromkeys(paths, ".venv\nnode_modules/\n"))
    ((task, _),) = load_tasks(f"local:{tmp_path}")
    assert task.workspace.overlay == {".venv": None, "web/node_modules": None}
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        kept = {entry.path for entry in sandbox.walk() if entry.kind == "file"}
    assert kept == {".gitignore", "venv/kept.py", "a.py"}
    ((own, _),) = load_tasks(f"local:{tmp_path}", entrypoint=".venv/bin/python -m pytest")
    assert own.workspace.overlay == {"web/node_modules": None}


# --- every case of the casebook is what it says

Pair = tuple[Task, Oracle]
EVERY_CASE = pytest.mark.parametrize("case", load_tasks("casebook"), ids=lambda case: case[0].id.partition("/")[2])


@EVERY_CASE
@needs_sandbox
def test_the_tests_of_the_buggy_and_of_the_clean_project_end_as_listed(case: Pair) -> None:
    task, oracle = case
    with open_sandbox(task, CHEAPEST, trusted=True) as sandbox:
        workspace, buggy = Workspace(task, sandbox), sandbox.snapshot()
        runs = [workspace.run_tests(warm=True)]
        apply_to_sandbox(sandbox, oracle.gold_patch, task.id, buggy)
        runs.append(workspace.run_tests(warm=True))
    before, after = ({each.id: each.outcome == "passed" for each in run.outcomes} for run in runs)
    assert before == {**dict.fromkeys(oracle.fail_to_pass, False), **dict.fromkeys(oracle.pass_to_pass, True)}
    assert after == dict.fromkeys((*oracle.fail_to_pass, *oracle.pass_to_pass), True)


@EVERY_CASE
def test_a_case_is_complete(case: Pair) -> None:
    task, oracle = case
    repo = Path(str(task.workspace.path))
    facts = yaml.safe_load((repo.parent / "case.yaml").read_text(encoding="utf-8"))
    assert set(facts) == {"title", "problem_statement", "why_runtime", "fail_to_pass", "pass_to_pass"}
    assert all(facts.values())
    assert (task.id, task.entrypoint) == (f"casebook/{task.tags['project']}", ("python", "-m", "pytest", "-q"))
    assert (task.readonly, (repo / ".debugreadonly").is_file()) == (("tests/",), True)
    assert oracle.gold_patch not in task.model_dump_json()
    for listed in (oracle.fail_to_pass, oracle.pass_to_pass):
        assert len(listed) == len(set(listed)) > 0
    changed = {path: text for path, text in task.workspace.overlay.items() if text is not None}
    assert gold_lines(oracle.gold_patch).keys() <= task.workspace.overlay.keys()
    assert not [path for path in changed if path.startswith("tests/")]
    assert all((repo / path).read_text() == text for path, text in apply_patch(changed, oracle.gold_patch).items())
    own = {path.stem for path in repo.rglob("*.py")} | {path.name for path in repo.iterdir()}
    for source in (*(path.read_text() for path in repo.rglob("*.py")), *changed.values()):
        for node in ast.walk(ast.parse(source, feature_version=(3, 8))):
            if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level):
                names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
                assert {name.partition(".")[0] for name in names} <= {*sys.stdlib_module_names, "pytest", *own}
