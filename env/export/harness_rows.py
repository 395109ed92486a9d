"""Rows as the harness 5.x wants them, with the image, the script that runs the tests and the parser of its log.

A row of the classic schema says nothing of how its tests are run: the harness used to keep that apart, for each of its
twelve repositories and each of their versions. Such a row is completed here only where pytest alone runs the tests;
for the repositories with a way of their own the row has to come with its script.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from gumshoe.env.diff import parse_patch
from gumshoe.env.tasks.swebench import image_of
from gumshoe.errors import TaskError

__all__ = ["eval_script", "harness_row"]

NEEDED = ("image", "log_parser", "eval_type", "eval_script")
# Their versions differ in how the tests are run, or in what is done before.
OWN_WAY = frozenset(
    {
        "astropy/astropy",
        "django/django",
        "matplotlib/matplotlib",
        "mwaskom/seaborn",
        "pallets/flask",
        "psf/requests",
        "pydata/xarray",
        "pylint-dev/pylint",
        "pytest-dev/pytest",
        "scikit-learn/scikit-learn",
        "sphinx-doc/sphinx",
        "sympy/sympy",
    }
)
SCRIPT = """\
#!/bin/bash
set -uxo pipefail
{activate}
cd /testbed
git config --global --add safe.directory /testbed
{reset}
{apply}
: '>>>>> Start Test Output'
{command}
: '>>>>> End Test Output'
{reset}
"""
ACTIVATE = """\
if [ -f /opt/miniconda3/bin/activate ]; then
  set +u
  source /opt/miniconda3/bin/activate testbed
  set -u
fi"""


def harness_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with everything that the harness reads. Raises TaskError where that cannot be known."""
    missing = [column for column in NEEDED if not row.get(column)]
    if not missing:
        return dict(row)
    if row["repo"] in OWN_WAY:
        raise TaskError(
            f"task {row['instance_id']}: column {missing[0]} is missing: the harness 5.x needs it for {row['repo']}; "
            "use the rows of a data set made for 5.x"
        )
    made = {
        "image": image_of(row["instance_id"]),
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": _script(row["test_patch"], row["base_commit"]),
    }
    return {"version": "", **row, **{column: made[column] for column in missing}}


def _script(test_patch: str, base_commit: str) -> str:
    patched = parse_patch(test_patch)
    files = shlex.join(dict.fromkeys(f.target for f in patched if f.target and f.target.endswith(".py")))
    return eval_script(test_patch, base_commit, f"python -m pytest -rA {files}")


def eval_script(test_patch: str, base_commit: str, command: str, tests: Sequence[str] = ()) -> str:
    """The script that runs an instance's tests.

    Args:
        test_patch: applied before; may be empty.
        base_commit: where the original tests come from.
        command: runs the tests, and prints a line for each.
        tests: further files that are put back to how they were.
    """
    patched = parse_patch(test_patch) if test_patch.strip() else []
    patch = test_patch if test_patch.endswith("\n") else f"{test_patch}\n"
    end = f"END_{hashlib.sha256(patch.encode()).hexdigest()[:16]}"
    before = [*tests, *(file.source for file in patched if file.source and file.source not in tests)]
    return SCRIPT.format(
        activate=ACTIVATE,
        reset=_reset(before, [f.target for f in patched if f.target], base_commit),
        apply=f"git apply -v - <<'{end}'\n{patch}{end}" if patched else ":",
        command=command,
    )


def _reset(before: Sequence[str], after: Sequence[str], base_commit: str) -> str:
    """Puts the test files back to how they were, whatever a patch has made of them."""
    new = [path for path in after if path not in before]
    lines = [f"rm -f -- {shlex.join(new)}"] if new else []
    lines += [f"git checkout {shlex.quote(base_commit)} -- {shlex.join(before)}"] if before else []
    return "\n".join(lines) or ":"
