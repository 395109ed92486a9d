"""Every case of the casebook is what it says: run, not read."""

from __future__ import annotations

import ast
import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import gumshoe.env
from gumshoe.env.diff import apply_patch, apply_to_folder
from gumshoe.env.diff.apply import source_paths

CASEBOOK = Path(gumshoe.env.__file__).resolve().parent / "casebook"
CASES = sorted(path.parent for path in CASEBOOK.glob("*/case.yaml"))
OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) (\S+::\S+)", re.MULTILINE)

pytestmark = [
    pytest.mark.parametrize("case", CASES, ids=lambda case: case.name),
    pytest.mark.usefixtures("not_measured"),
]


def read_case(case: Path) -> dict[str, Any]:
    return yaml.safe_load((case / "case.yaml").read_text(encoding="utf-8"))


def files_under(folder: Path) -> list[Path]:
    """The files of a project, without the byte code that running its tests in place leaves."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if "__pycache__" not in path.parts)


def buggy_files(case: Path) -> dict[Path, str]:
    """The files that the bug changes, with the bug."""
    patch = (case / "bug.patch").read_text()
    clean = {path: (case / "repo" / path).read_text() for path in source_paths(patch)}
    return {Path(path): text or "" for path, text in apply_patch(clean, patch).items()}


def run_tests(project: Path) -> dict[str, str]:
    """Return the outcome of each test in `project`, by node id."""
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    argv = [sys.executable, "-m", "pytest", "-q", "-rA", "--color=no", "-p", "no:cacheprovider"]
    done = subprocess.run(argv, cwd=project, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return {node: outcome for outcome, node in OUTCOME.findall(done.stdout)}


def changed_lines(before: str, after: str) -> int:
    """Return how many lines one side of the diff has at most."""
    diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=0))[2:]
    return max(sum(line.startswith(sign) for line in diff) for sign in "+-")


def imported_names(tree: ast.AST) -> set[str]:
    """Return the top-level names of all absolute imports in `tree`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def test_clean_project_passes_and_bug_fails_as_listed(case: Path, tmp_path: Path) -> None:
    facts = read_case(case)
    clean, buggy = tmp_path / "clean", tmp_path / "buggy"
    shutil.copytree(case / "repo", clean)
    shutil.copytree(case / "repo", buggy)
    apply_to_folder(buggy, (case / "bug.patch").read_text())

    listed = {*facts["fail_to_pass"], *facts["pass_to_pass"]}
    assert run_tests(clean) == dict.fromkeys(listed, "PASSED")

    outcomes = run_tests(buggy)
    assert sorted(node for node, outcome in outcomes.items() if outcome != "PASSED") == sorted(facts["fail_to_pass"])
    assert sorted(node for node, outcome in outcomes.items() if outcome == "PASSED") == sorted(facts["pass_to_pass"])


def test_case_file_is_complete(case: Path) -> None:
    facts = read_case(case)
    assert set(facts) == {"title", "problem_statement", "why_runtime", "fail_to_pass", "pass_to_pass"}
    assert facts["title"].strip()
    assert facts["why_runtime"].strip()
    assert 40 <= len(facts["problem_statement"]) <= 800
    assert facts["fail_to_pass"]
    assert facts["pass_to_pass"]
    for listed in (facts["fail_to_pass"], facts["pass_to_pass"]):
        assert len(listed) == len(set(listed))


def test_project_is_small_and_whole(case: Path) -> None:
    files = files_under(case / "repo")
    assert 3 <= len(files) <= 8
    assert Path(".debugreadonly") in files
    assert any(path.match("tests/test_*.py") for path in files)


def test_bug_is_a_small_change_outside_the_tests(case: Path) -> None:
    changed = buggy_files(case)
    assert changed
    assert set(changed) <= set(files_under(case / "repo"))
    assert not [path for path in changed if path.parts[0] == "tests"]
    counts = [changed_lines((case / "repo" / path).read_text(), text) for path, text in changed.items()]
    assert all(count >= 1 for count in counts)
    assert sum(counts) <= 6


def test_sources_need_only_python_3_8_and_pytest(case: Path) -> None:
    sources = {path.relative_to(case / "repo"): path.read_text() for path in (case / "repo").rglob("*.py")}
    own = {path.stem for path in sources} | {path.name for path in (case / "repo").iterdir()}
    for source in (*sources.values(), *buggy_files(case).values()):
        tree = ast.parse(source, feature_version=(3, 8))
        assert imported_names(tree) <= set(sys.stdlib_module_names) | {"pytest"} | own
