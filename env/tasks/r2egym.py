"""R2E-Gym: commits of real repositories, with the tests of the commit in the image and their outcomes in the row.

The image holds the repository as it was before the commit in /testbed, its environment in /testbed/.venv, the tests in
/r2e_tests (or in /testbed already) and `run_tests.sh`. In the regime `issue` the agent has no tests; in `debug` they
are in /testbed/r2e_tests, read-only. Tests go by names like `TestCart.test_total`, without their file.

What is not covered: a row whose commit breaks a test says so in its expected outcomes; such a test is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.projects import PYTEST
from gumshoe.env.tasks.rows import ROOT, Row, RowSource, script
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec

TEXTS = ("repo_name", "docker_image", "commit_hash", "problem_statement")
COMMIT, EXPECTED, BEFORE = "parsed_commit_content", "expected_output_json", "execution_result_content"
ACTIVATE = f"if [ -f {ROOT}/.venv/bin/activate ]; then source {ROOT}/.venv/bin/activate; fi"
RUN = ("bash", "run_tests.sh")
DEBUG = ("python", "-W", "ignore", "-m", "pytest", "-q", "r2e_tests")
SHOW_TESTS = script(f"if [ -d /r2e_tests ]; then rm -rf {ROOT}/r2e_tests; mv /r2e_tests {ROOT}/r2e_tests; fi")
HIDE_TESTS = script(f"rm -rf /r2e_tests /root/r2e_tests {ROOT}/r2e_tests {ROOT}/run_tests.sh")
IGNORE = ("/.venv/", "/run_tests.sh", "/install.sh")
READONLY = ("/r2e_tests/", "/run_tests.sh")
ISSUE = re.compile(r"\[ISSUE\](.*)\[/ISSUE\]", re.DOTALL)
SUMMARY = "short test summary info"
VERDICT = re.compile(r"^(PASSED|FAILED|ERROR) [^:]*::(.+)$")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
TIMEOUT_S = 600.0


def _graded(task: Task, _: Oracle) -> Task:
    """The task as a grader runs it: with the tests."""
    return task.model_copy(update={"setup": (SHOW_TESTS,), "regime": "debug", "readonly": READONLY, "entrypoint": RUN})


def _instance(row: Row, debug: bool) -> tuple[Task, Oracle]:
    row.require((*TEXTS, COMMIT, EXPECTED), texts=TEXTS)
    issue = ISSUE.search(row["problem_statement"])
    task = Task(
        id=f"r2egym/{row['repo_name']}/{row['commit_hash'][:12]}",
        source="r2egym",
        problem_statement=(issue[1] if issue else row["problem_statement"]).strip() + "\n",
        workspace=WorkspaceSpec(image=row["docker_image"], workdir=ROOT, activate=ACTIVATE),
        entrypoint=RUN if debug else PYTEST,
        debug_entrypoint=DEBUG if debug else None,
        setup=(SHOW_TESTS,) if debug else (HIDE_TESTS,),
        ignore=IGNORE,
        readonly=READONLY if debug else (),
        limits=Limits(command_timeout_s=TIMEOUT_S),
        regime="debug" if debug else "issue",
        tags={"project": row["repo_name"], "base_commit": f"{row['commit_hash']}^"},
    )
    passing, before = _expected(row), _passed_before(row)
    oracle = Oracle(
        task_id=task.id,
        gold_patch=_gold(row),
        fail_to_pass=tuple(test for test in passing if test not in before),
        pass_to_pass=tuple(test for test in passing if test in before),
    )
    return task, oracle


def _expected(row: Row) -> list[str]:
    """The tests that pass once the commit is made, sorted."""
    outcomes = row.json(EXPECTED)
    if not isinstance(outcomes, dict):
        raise row.error(f"column {EXPECTED} is not a mapping of tests to outcomes")
    passing = {_name(test) for test, outcome in outcomes.items() if outcome == "PASSED"}
    if not passing:
        raise row.error(f"column {EXPECTED} holds no test that passes")
    return sorted(passing)


def _passed_before(row: Row) -> set[str]:
    """The tests that pass without the commit, as the log of that run says; none where the row has no log."""
    if row.get(BEFORE) is None:
        return set()
    facts = row.json(BEFORE)
    log = facts.get("old_commit_res_stdout") if isinstance(facts, dict) else None
    lines = COLOR.sub("", log or "").partition(SUMMARY)[2].splitlines()
    verdicts = [match for line in lines if (match := VERDICT.match(line.strip()))]
    return {_name(match[2].replace("::", ".")) for match in verdicts if match[1] == "PASSED"}


def _name(test: str) -> str:
    return COLOR.sub("", test).split(" - ")[0]


def _gold(row: Row) -> str:
    """What the commit changes in Python files, without tests. Raises TaskError."""
    commit = row.json(COMMIT)
    try:
        changes = [_change(diff) for diff in commit["file_diffs"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise row.error(f"column {COMMIT} lacks {error}") from None
    return make_patch({path: sides for path, sides in changes if path.endswith(".py") and not _is_test(path)})


def _change(diff: Mapping[str, Any]) -> tuple[str, tuple[bytes | None, bytes | None]]:
    sides = (diff["old_file_content"], diff["new_file_content"])
    gone = [(diff.get(key) or {}).get("path") == "/dev/null" for key in ("minus_file", "plus_file")]
    before, after = (None if absent else text.encode() for absent, text in zip(gone, sides, strict=True))
    return diff["header"]["file"]["path"], (before, after)


def _is_test(path: str) -> bool:
    """Whether a file is a test. Less counts than with `holds_tests`: a conftest.py stays in the gold patch."""
    name = path.rpartition("/")[2]
    return name.startswith("test_") or name.endswith("_test.py") or bool({"test", "tests"} & set(path.split("/")[:-1]))


R2EGYM = RowSource(
    _instance, _graded, path="R2E-Gym/R2E-Gym-Lite", split="train", regime="issue", name_column="docker_image"
)
