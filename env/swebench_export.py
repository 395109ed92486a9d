"""Writes tasks as rows for the official SWE-bench harness, with the folders that their images are built from."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.env.bugs.packages.build_sandbox import WORKSPACE
from gumshoe.env.harness_rows import eval_script, harness_row
from gumshoe.env.sandboxes.staging import checked_overlay, repository_of
from gumshoe.env.tasks.projects import left_out_of_copy
from gumshoe.env.tasks.rows import ROOT
from gumshoe.env.verifier.rules import named_test_files
from gumshoe.env.virtualenvs import INSIDE, Lock, read_environment
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import new_folder
from gumshoe.tools.runs.commands import is_pytest

ROWS, BUILD = "rows.jsonl", "build.sh"
BASE = "gumshoe-base"
COMMIT = f"""\
RUN git init -q . && git add -A -f . \\
 && git -c user.name=gumshoe -c user.email=gumshoe@localhost commit -q -m base && git tag {BASE}
"""


@dataclass(frozen=True)
class Exported:
    """How many tasks were written, and why others were not, by their ids."""

    count: int
    refused: dict[str, str]


def export_tasks(tasks: Iterable[tuple[Task, Oracle]], out: Path, *, base_image: str | None = None) -> Exported:
    """Writes tasks to the folder `out`, which is replaced when all is written. Raises TaskError if none can be.

    Images are built from `base_image`, else from the Python image for the task's version.
    """
    refused: dict[str, str] = {}
    count = 0
    with new_folder(out) as fresh:
        for task, oracle in tasks:
            try:
                _write_row(task, oracle, fresh, base_image)
                count += 1
            except TaskError as error:
                refused[task.id] = str(error).removeprefix(f"task {task.id}: ")
        if not count:
            first = next(iter(refused.items()), None)
            raise TaskError("no task can be exported to swebench" + (f": {first[0]}: {first[1]}" if first else ""))
    return Exported(count, refused)


def _write_row(task: Task, oracle: Oracle, out: Path, base: str | None) -> None:
    """Adds a task's row to rows.jsonl; one that comes as a folder gets an image to build, too. Raises TaskError."""
    if task.source == "swebench":
        row = _row_of_instance(task, oracle)
    else:
        _refuse_unfit(task, oracle)
        row = _row_of_folder(task, oracle)
        placed = task.model_copy(update={"workspace": task.workspace.model_copy(update={"workdir": ROOT})})
        place = f"images/{row['instance_id']}"
        write_context(placed, out / place, base, COMMIT)
        with (out / BUILD).open("a", encoding="utf-8") as script:
            script.write(f'docker build -t {row["image"]} "$(dirname "$0")"/{place}\n')
    with (out / ROWS).open("a", encoding="utf-8") as rows:
        rows.write(json.dumps(row) + "\n")


def _refuse_unfit(task: Task, oracle: Oracle) -> None:
    """Raises TaskError for a task that the harness cannot judge, or for which no image can be built."""
    if not oracle.fail_to_pass:
        raise TaskError("its answer names no test that is to pass, and the harness needs one")
    if not is_pytest(task.entrypoint):
        argv = shlex.join(task.entrypoint)
        raise TaskError(f"its tests are run by `{argv}`, and the harness reads the output of pytest")
    if task.workspace.path is None:
        raise TaskError(f"its repository is in the image {task.workspace.image}, not in a folder")
    if task.workspace.activate:
        raise TaskError("its environment is activated by a script")


def _row_of_instance(task: Task, oracle: Oracle) -> dict[str, Any]:
    known = {"repo": task.tags["project"], "base_commit": task.tags["base_commit"], "version": task.tags["version"]}
    return harness_row({**_columns(task, oracle, task.id), **known, "image": task.workspace.image})


def _row_of_folder(task: Task, oracle: Oracle) -> dict[str, Any]:
    name = _named(task.id)
    hidden = oracle.test_patch if task.regime == "issue" else ""
    repo = Path(str(task.workspace.path))
    tests = [path for path in named_test_files(oracle) if (repo / path).is_file()]
    return {
        **_columns(task, oracle, name),
        "test_patch": hidden,
        "repo": f"gumshoe/{task.tags.get('project') or name}",
        "base_commit": BASE,
        "version": "",
        "image": f"gumshoe/{name}:{task.hash[:12]}",
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": eval_script(hidden, BASE, f"{shlex.join(task.entrypoint)} -rA", tests),
    }


def _columns(task: Task, oracle: Oracle, name: str) -> dict[str, Any]:
    return {
        "instance_id": name,
        "problem_statement": task.problem_statement,
        "patch": oracle.gold_patch,
        "test_patch": oracle.test_patch,
        "FAIL_TO_PASS": json.dumps(oracle.fail_to_pass),
        "PASS_TO_PASS": json.dumps(oracle.pass_to_pass),
    }


REPO, LOCK = "repo", "environment"
PYTEST = "pytest>=8,<10"
DOCKERFILE = """\
FROM {base}
{environment}COPY {repo} {workdir}
WORKDIR {workdir}
{setup}"""
ENVIRONMENT = """\
COPY {lock} /tmp/{lock}
RUN python3 -m venv {inside} \\
 && {inside}/bin/python -m pip install --no-cache-dir --no-deps -r /tmp/{lock}/requirements.txt \\
 && cp -R /tmp/{lock}/files/. "$({inside}/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \\
 && rm -r /tmp/{lock}
ENV PATH={inside}/bin:$PATH VIRTUAL_ENV={inside}{variables}
"""
NO_ENVIRONMENT = """\
RUN python3 -m pytest --version || python3 -m pip install --no-cache-dir '{pytest}'
RUN command -v python || ln -s "$(command -v python3)" /usr/local/bin/python
"""


def write_context(task: Task, folder: Path, base: str | None, more: str = "") -> None:
    """Writes Dockerfile, repository and lock.

    Args:
        task: one that is not refused.
        folder: is created.
        base: image to build from, which has Python, and pytest if pip cannot get it; None chooses
            `python:VERSION`.
        more: further lines of the Dockerfile.

    Raises:
        TaskError: the repository or the environment is not on this machine.
    """
    folder.mkdir(parents=True)
    _copy_repository(task, folder / REPO)
    if task.workspace.environment is None:
        version, environment = "3.12", NO_ENVIRONMENT.format(pytest=PYTEST)
    else:
        lock = read_environment(task.workspace.environment).lock
        version, environment = lock.python, _write_lock(lock, folder / LOCK, task.workspace.workdir)
    text = DOCKERFILE.format(
        base=base or f"python:{version}",
        environment=environment,
        repo=REPO,
        workdir=task.workspace.workdir,
        setup="".join(f"RUN {json.dumps(list(argv))}\n" for argv in task.setup),
    )
    (folder / "Dockerfile").write_text(text + more, encoding="utf-8")


def _named(task_id: str) -> str:
    """A task's id in a form that can name a folder and an image."""
    return re.sub(r"[^a-z0-9.-]+", "-", task_id.lower()).strip("-.")


def _copy_repository(task: Task, target: Path) -> None:
    shutil.copytree(repository_of(task), target, symlinks=True, ignore=left_out_of_copy)
    for path, text in checked_overlay(task).items():
        place = target / path
        if text is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.write_bytes(text.encode("utf-8", "surrogateescape"))
        elif place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)


def _write_lock(lock: Lock, folder: Path, workdir: str) -> str:
    """Writes the lock's files, and returns the lines of the Dockerfile that install it.

    The files say where the package's sources are, which may be elsewhere in this image.
    """
    (folder / "files").mkdir(parents=True)
    (folder / "requirements.txt").write_text("".join(f"{name}\n" for name in lock.packages), encoding="utf-8")
    for name, text in lock.files.items():
        place = folder / "files" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.replace(WORKSPACE, workdir), encoding="utf-8")
    variables = "".join(f" {name}={shlex.quote(value)}" for name, value in sorted(lock.variables.items()))
    return ENVIRONMENT.format(lock=LOCK, inside=INSIDE, variables=variables)
