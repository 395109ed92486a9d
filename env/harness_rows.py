"""Rows as harness 5.x wants them, with the image, the script that runs the tests and the parser of its log.

A row of the classic schema does not say how its tests are run: the harness used to keep that separately, for each
repository and version. Such a row is completed here from the same facts, without network. A repository that the harness
never knew is taken to run its tests with pytest, where the test patch has Python files.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gumshoe.env.diff import parse_patch
from gumshoe.env.diff.parse import FilePatch
from gumshoe.env.tasks.rows import Row, runnable_test_files
from gumshoe.env.tasks.swebench import image_of
from gumshoe.env.tasks.taskset import named
from gumshoe.errors import TaskError

SOURCE = "swebench 4.1.0"
"""Where the facts come from."""
FACTS = Path(__file__).with_name("harness_specs.yaml")
COMPLETED = "completed"
"""The column that says which columns were filled in here, and from what."""
NEEDED = ("image", "log_parser", "eval_type", "eval_script")
NEEDS_SPEC = frozenset({"log_parser", "eval_script"})
TEXTS = ("instance_id", "repo", "base_commit", "test_patch")
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
# Files of a test patch with these endings are not tests: the harness does not pass them to the test command.
NO_TESTS = (".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml")
SCRIPT = """\
#!/bin/bash
set -uxo pipefail
{activate}
cd /testbed
{before}
git config --global --add safe.directory /testbed
{install}
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


@dataclass(frozen=True)
class HarnessSpec:
    """How one version of a repository runs its tests.

    Args:
        parser: name of the harness's function that reads the log.
        tests: the command; the names of the tests follow it.
        before: commands in the environment, before the installation.
        install: installs the patched repository; empty: nothing to do.
    """

    parser: str
    tests: str
    before: tuple[str, ...] = ()
    install: str = ""


PYTEST = HarnessSpec("parse_log_pytest", "python -m pytest -rA")


def harness_rows(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every row with what the harness reads. Raises TaskError with a line for each row that cannot be completed."""
    ready, faults = [], []
    for number, row in enumerate(rows, 1):
        try:
            ready.append(harness_row(row, number))
        except TaskError as error:
            faults.append(str(error))
    if faults:
        raise TaskError("\n".join(faults))
    return ready


def harness_row(row: Mapping[str, Any], number: int = 1) -> dict[str, Any]:
    """The row with everything that the harness reads; one that was filled in says so in its column `completed`.

    Args:
        row: in the classic schema, or in that of 5.x.
        number: what it is called in messages if it has no name.

    Raises:
        TaskError: the row cannot be completed.
    """
    missing = [column for column in NEEDED if not row.get(column)]
    checked = Row(row, number)
    checked.require((*TEXTS, *TESTS), texts=TEXTS)
    if not missing:
        return {"version": "", **row}
    made = {"image": image_of(row["instance_id"]), "eval_type": "pass_and_fail"}
    note = ", ".join(missing)
    if NEEDS_SPEC.intersection(missing):
        with named(checked.name):
            patched = parse_patch(row["test_patch"])
        spec, manner = _spec(checked)
        tests = runnable_test_files(row["test_patch"]) if spec is PYTEST else _directives(row["repo"], patched)
        made["log_parser"] = spec.parser
        made["eval_script"] = eval_script(
            row["test_patch"],
            row["base_commit"],
            f"{spec.tests} {shlex.join(tests)}".rstrip(),
            before=spec.before,
            install=spec.install,
        )
        note = f"{note}; tests are run {manner}"
    return {"version": "", **row, **{column: made[column] for column in missing}, COMPLETED: note}


def _spec(row: Row) -> tuple[HarnessSpec, str]:
    """How the row's tests are run, and the same in words."""
    repo, version = row["repo"], str(row.get("version") or "")
    try:
        spec = _specs()[repo].get(version)
    except KeyError:
        if runnable_test_files(row["test_patch"]):
            return PYTEST, "with pytest"
        spec = None
    if spec is None:
        raise row.error(
            f"it is not known how {repo} runs its tests in version {version or '(none)'}, and the row has no "
            "eval_script and log_parser: use rows made for harness 5.x"
        )
    return spec, f"as in {SOURCE}"


def _directives(repo: str, patched: Iterable[FilePatch]) -> list[str]:
    """The tests of a test patch, as the test command names them."""
    paths = [str(file.target or file.source) for file in patched]
    paths = [path for path in paths if not path.endswith(NO_TESTS)]
    if repo == "django/django":
        paths = [path.removesuffix(".py").removeprefix("tests/").replace("/", ".") for path in paths]
    return paths


def eval_script(
    test_patch: str,
    base_commit: str,
    command: str,
    tests: Sequence[str] = (),
    *,
    before: Sequence[str] = (),
    install: str = "",
) -> str:
    """The script that runs an instance's tests.

    Args:
        test_patch: applied before; may be empty.
        base_commit: where the original tests come from.
        command: runs the tests, and prints a line for each.
        tests: further files that are put back to how they were.
        before: commands in the environment, before everything else.
        install: installs the patched repository.
    """
    patched = parse_patch(test_patch) if test_patch.strip() else []
    patch = test_patch if test_patch.endswith("\n") else f"{test_patch}\n"
    end = f"END_{hashlib.sha256(patch.encode()).hexdigest()[:16]}"
    known = [*tests, *(file.source for file in patched if file.source and file.source not in tests)]
    return SCRIPT.format(
        activate=ACTIVATE,
        before="\n".join(before) or ":",
        install=install or ":",
        reset=_reset(known, [f.target for f in patched if f.target], base_commit),
        apply=f"git apply -v - <<'{end}'\n{patch}{end}" if patched else ":",
        command=command,
    )


def _reset(before: Sequence[str], after: Sequence[str], base_commit: str) -> str:
    """Puts the test files back to how they were, whatever a patch has made of them."""
    new = [path for path in after if path not in before]
    lines = [f"rm -f -- {shlex.join(new)}"] if new else []
    lines += [f"git checkout {shlex.quote(base_commit)} -- {shlex.join(before)}"] if before else []
    return "\n".join(lines) or ":"


@cache
def _specs() -> Mapping[str, Mapping[str, HarnessSpec]]:
    """By repository and version."""
    facts: dict[str, dict[str, Any]] = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    return {
        repo: {
            version: HarnessSpec(known["parser"], run["tests"], tuple(run.get("before", ())), run.get("install", ""))
            for run in known["runs"]
            for version in run["versions"]
        }
        for repo, known in facts.items()
    }
