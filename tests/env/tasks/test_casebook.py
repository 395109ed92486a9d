"""Every case of the casebook is what it says: run, not read."""

from __future__ import annotations

import ast
import difflib
import sys
from pathlib import Path

import pytest
import yaml

from gumshoe.env import Workspace, open_sandbox
from gumshoe.env.diff import apply_patch, apply_to_sandbox, gold_lines
from gumshoe.env.tasks import load_tasks
from gumshoe.records import Oracle, Task
from support.sandboxes.sandbox_backends import CHEAPEST

Pair = tuple[Task, Oracle]

pytestmark = pytest.mark.parametrize("case", load_tasks("casebook"), ids=lambda case: case[0].id.partition("/")[2])


def files_under(folder: Path) -> list[Path]:
    """The files of a project, without the byte code that running its tests in place leaves."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if "__pycache__" not in path.parts)


def changed_lines(before: str, after: str) -> int:
    """How many lines one side of the diff has at most."""
    diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0))[2:]
    return max(sum(line.startswith(sign) for line in diff) for sign in "+-")


def imported_names(tree: ast.AST) -> set[str]:
    """The top-level names of all absolute imports in `tree`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


@pytest.mark.needs("bubblewrap")
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


def test_a_case_is_complete_small_and_portable(case: Pair) -> None:
    task, oracle = case
    repo = Path(str(task.workspace.path))
    facts = yaml.safe_load((repo.parent / "case.yaml").read_text(encoding="utf-8"))
    assert set(facts) == {"title", "problem_statement", "why_runtime", "fail_to_pass", "pass_to_pass"}
    assert facts["title"].strip()
    assert facts["why_runtime"].strip()
    assert 40 <= len(facts["problem_statement"]) <= 800
    for listed in (oracle.fail_to_pass, oracle.pass_to_pass):
        assert len(listed) == len(set(listed)) > 0

    assert task.id == oracle.task_id == f"casebook/{task.tags['project']}"
    assert task.entrypoint == ("python", "-m", "pytest", "-q")
    assert task.readonly == ("tests/",)
    assert oracle.gold_patch not in task.model_dump_json()
    assert gold_lines(oracle.gold_patch).keys() <= task.workspace.overlay.keys()

    files = files_under(repo)
    assert 3 <= len(files) <= 8
    assert Path(".debugreadonly") in files
    assert any(path.match("tests/test_*.py") for path in files)

    changed = {path: text for path, text in task.workspace.overlay.items() if text is not None}
    assert set(map(Path, changed)) <= set(files)
    assert not [path for path in changed if path.startswith("tests/")]
    assert all((repo / path).read_text() == text for path, text in apply_patch(changed, oracle.gold_patch).items())
    counts = [changed_lines((repo / path).read_text(), text) for path, text in changed.items()]
    assert min(counts) >= 1
    assert sum(counts) <= 6

    sources = {path.relative_to(repo): path.read_text() for path in repo.rglob("*.py")}
    own = {path.stem for path in sources} | {path.name for path in repo.iterdir()}
    for source in (*sources.values(), *changed.values()):
        tree = ast.parse(source, feature_version=(3, 8))
        assert imported_names(tree) <= set(sys.stdlib_module_names) | {"pytest"} | own
