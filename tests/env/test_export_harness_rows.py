"""Classic rows of SWE-bench, completed for the harness 5.x: examples checked by hand against swebench 4.1.0."""

from __future__ import annotations

from typing import Any

import pytest

from gumshoe.env.diff import make_patch
from gumshoe.env.harness_rows import harness_row, harness_rows
from gumshoe.errors import TaskError

TEST_PATCH = make_patch({"tests/sub/test_a.py": (b"x\n", b"y\n"), "tests/sub/data.json": (None, b"{}\n")})


SAFE = "git config --global --add safe.directory /testbed"


def a_row(repo: str, version: str, **columns: Any) -> dict[str, Any]:
    row = {"repo": repo, "version": version, "instance_id": f"{repo.replace('/', '__')}-1", "base_commit": "abc"}
    return {**row, "test_patch": TEST_PATCH, "FAIL_TO_PASS": "[]", "PASS_TO_PASS": "[]", **columns}


def lines_of(script: str) -> list[str]:
    return [line for line in script.splitlines() if line != ":"]


@pytest.mark.parametrize(
    ("repo", "version", "parser", "install", "command"),
    [
        ("pallets/flask", "2.3", "pytest", "-e .", "pytest -rA tests/sub/test_a.py"),
        (
            "django/django",
            "4.2",
            "django",
            "-e .",
            "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 sub.test_a",
        ),
        (
            "matplotlib/matplotlib",
            "3.8",
            "matplotlib",
            '--no-build-isolation -e ".[dev]"',
            "pytest -rA tests/sub/test_a.py",
        ),
        (
            "sphinx-doc/sphinx",
            "7.2",
            "pytest_v2",
            "-e .[test]",
            "tox --current-env -epy39 -v -- tests/sub/test_a.py",
        ),
        (
            "sympy/sympy",
            "1.10",
            "sympy",
            "-e .",
            "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose tests/sub/test_a.py",
        ),
    ],
)
def test_every_repository_has_its_own_way(repo: str, version: str, parser: str, install: str, command: str) -> None:
    row = harness_row(a_row(repo, version))
    assert (row["log_parser"], row["eval_type"]) == (f"parse_log_{parser}", "pass_and_fail")
    script = lines_of(row["eval_script"])
    assert script[script.index(": '>>>>> Start Test Output'") + 1] == command
    assert f"python -m pip install {install}" == script[script.index(SAFE) + 1]
    assert row["completed"] == "image, log_parser, eval_type, eval_script; tests are run as in swebench 4.1.0"


def test_commands_before_the_installation_are_kept() -> None:
    script = lines_of(harness_row(a_row("django/django", "3.0"))["eval_script"])
    start = script.index("cd /testbed") + 1
    generated, *exported = script[start : script.index(SAFE)]
    assert "locale-gen" in generated
    assert exported == ["export LANG=en_US.UTF-8", "export LANGUAGE=en_US:en", "export LC_ALL=en_US.UTF-8"]


def test_what_a_row_brings_is_kept() -> None:
    given = a_row("django/django", "unheard of", image="local/image", log_parser="p", eval_script="#!/bin/bash\n")
    assert harness_row(given) == {**given, "eval_type": "pass_and_fail", "completed": "eval_type"}


def test_rows_that_cannot_be_completed_are_refused_with_a_line_each() -> None:
    other_language = a_row("redis/redis", "12", test_patch=make_patch({"tests/unit.tcl": (b"a\n", b"b\n")}))
    rows = [a_row("psf/requests", "2.0"), a_row("django/django", "9.9"), other_language, {"instance_id": "x"}]
    with pytest.raises(TaskError) as caught:
        harness_rows(rows)
    known = "and the row has no eval_script and log_parser: use rows made for harness 5.x"
    assert str(caught.value).splitlines() == [
        f"task django__django-1: it is not known how django/django runs its tests in version 9.9, {known}",
        f"task redis__redis-1: it is not known how redis/redis runs its tests in version 12, {known}",
        "task x: column repo is missing",
    ]
