"""QuixBugs: 40 classic algorithms with a bug in one line each, from a checkout of jkoppel/QuixBugs.

The repaired programs, and git's copy of them, are kept out of the sandbox.
"""

from __future__ import annotations

from pathlib import Path

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.content import digest_of
from gumshoe.env.tasks.entries import OnError, load_entries, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.storage import read_bounded

__all__ = ["load_quixbugs"]

BUGGY, CORRECT, TESTS, DATA = "python_programs", "correct_python_programs", "python_testcases", "json_testcases"
KEPT = frozenset({BUGGY, TESTS, DATA, "conftest.py"})
LIMITS = Limits(command_timeout_s=20)
"""Several of the bugs are loops that never end."""
MAX_PROGRAM_BYTES = 1 << 20


def load_quixbugs(path: str | Path, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every program that has a repaired version and tests, sorted by name.

    Raises TaskError when there are none; `on_error` may take that of a single program.
    """
    root = Path(path).resolve()
    names = sorted(file.stem.removeprefix("test_") for file in (root / TESTS).glob("test_*.py"))
    names = [name for name in names if (root / BUGGY / f"{name}.py").is_file()]
    if not names:
        raise TaskError(f"{path} is not a checkout of QuixBugs: it has no {BUGGY} with tests in {TESTS}")
    overlay: dict[str, str | None] = {entry.name: None for entry in sorted(root.iterdir()) if entry.name not in KEPT}
    workspace = WorkspaceSpec(path=str(root), content=digest_of(root), overlay=overlay)
    return load_entries(names, lambda name: _program(root, name, workspace), on_error)


def _program(root: Path, name: str, workspace: WorkspaceSpec) -> tuple[Task, Oracle]:
    file, tests = f"{BUGGY}/{name}.py", f"{TESTS}/test_{name}.py"
    try:
        buggy, correct = (
            read_bounded(root / folder / f"{name}.py", MAX_PROGRAM_BYTES, error=TaskError)
            for folder in (BUGGY, CORRECT)
        )
    except TaskError as error:
        raise TaskError(f"task quixbugs/{name}: {error}") from None
    command = ("python", "-m", "pytest", "-q", tests)
    task = Task(
        id=f"quixbugs/{name}",
        source="quixbugs",
        problem_statement=f"`{name}` gives wrong results, or never ends: `{' '.join(command)}` fails. Repair {file}.\n",
        workspace=workspace,
        entrypoint=command,
        readonly=(f"/{TESTS}/", f"/{DATA}/", "/conftest.py"),
        limits=LIMITS,
        tags={"project": name},
    )
    # A file's name stands for all of its tests; where some are always skipped, those that are known decide.
    skips = b"pytest.skip" in read_bounded(root / tests, MAX_PROGRAM_BYTES, error=TaskError)
    oracle = Oracle(
        task_id=task.id,
        gold_patch=make_patch({file: (buggy, _repaired(buggy, correct))}),
        fail_to_pass=() if skips else (tests,),
    )
    return task, oracle


def _repaired(buggy: bytes, correct: bytes) -> bytes:
    """The buggy file with the repaired code: blank lines and the text below the code differ for other reasons."""
    return buggy.replace(_code(buggy), _code(correct), 1)


def _code(program: bytes) -> bytes:
    return program.partition(b'\n"""')[0].strip(b"\n")
