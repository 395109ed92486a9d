"""Published benchmarks, read from a checkout as their authors lay it out: QuixBugs, BugsInPy and PyTER.

What holds the repair (other folders, git's own folder, the benchmark's notes) is kept out of the sandbox.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from gumshoe.env.diff import make_patch, parse_patch
from gumshoe.env.git import run_git
from gumshoe.env.tasks.projects import PYTEST, workspace_from_folder
from gumshoe.env.tasks.taskset import OnError, load_entries, named, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.storage import describe, read_bounded

__all__ = ["command_of", "load_bugsinpy", "load_pyter", "load_quixbugs"]

MAX_BYTES = 4 << 20
LIMITS = Limits(command_timeout_s=600)
# Several bugs of QuixBugs are loops that never end.
QUIXBUGS_LIMITS = Limits(command_timeout_s=20)
BUGGY, CORRECT, TESTS, DATA = "python_programs", "correct_python_programs", "python_testcases", "json_testcases"
BUGSINPY_NOTE = "bugsinpy_bug.info"
BUGSINPY_FACT = re.compile(r'^(\w+)="([^"\n]*)"', re.MULTILINE)
PYTER_FILES = (".git", "dependency_setup.sh", "pyter_requirements.txt", "pyter")
# Where PyTER's setup.sh names a repository's folder differently from bug_info.json.
PYTER_FOLDERS = {"scikit-learn": "scikitlearn"}


def load_quixbugs(path: str | Path, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every program that has a repaired version and tests, sorted by name.

    Raises:
        TaskError: `path` is no checkout of QuixBugs; `on_error` may take the error of a single program.
    """
    root = Path(path).resolve()
    names = sorted(file.stem.removeprefix("test_") for file in (root / TESTS).glob("test_*.py"))
    names = [name for name in names if (root / BUGGY / f"{name}.py").is_file()]
    if not names:
        raise TaskError(f"{path} is not a checkout of QuixBugs: it has no {BUGGY} with tests in {TESTS}")
    hidden = {entry.name for entry in root.iterdir()} - {BUGGY, TESTS, DATA, "conftest.py"}
    workspace = workspace_from_folder(root, dict.fromkeys(sorted(hidden)))
    return load_entries(names, lambda name: _quixbugs_program(root, name, workspace), on_error)


def _quixbugs_program(root: Path, name: str, workspace: WorkspaceSpec) -> tuple[Task, Oracle]:
    file, tests = f"{BUGGY}/{name}.py", f"{TESTS}/test_{name}.py"
    with named(f"task quixbugs/{name}"):
        buggy, correct, test_code = (_read(root / place) for place in (file, f"{CORRECT}/{name}.py", tests))
    command = (*PYTEST, tests)
    return _entry(
        f"quixbugs/{name}",
        name,
        workspace,
        command,
        # Blank lines and the text below the code differ for other reasons.
        make_patch({file: (buggy, buggy.replace(_quixbugs_code(buggy), _quixbugs_code(correct), 1))}),
        # A file's name stands for all of its tests; if some are always skipped, those that are known decide.
        fail_to_pass=() if b"pytest.skip" in test_code else (tests,),
        problem_statement=f"`{name}` gives wrong results, or never ends: `{' '.join(command)}` fails. Repair {file}.\n",
        readonly=(f"/{TESTS}/", f"/{DATA}/", "/conftest.py"),
        limits=QUIXBUGS_LIMITS,
    )


def _quixbugs_code(program: bytes) -> bytes:
    return program.partition(b'\n"""')[0].strip(b"\n")


def load_bugsinpy(
    path: str | Path, work: str | Path | None = None, *, on_error: OnError = refuse
) -> list[tuple[Task, Oracle]]:
    """The bugs that are checked out, sorted by their folders.

    Args:
        path: a checkout of soarsmu/BugsInPy.
        work: the folder below which `bugsinpy-checkout -v 0` put the bugs; by default its own folder in `path`.
        on_error: may take the error of a single bug.

    Raises:
        TaskError: `path` is something else, or no bug is checked out.
    """
    root = Path(path).resolve()
    # Two bugs may have one buggy commit; all facts taken together tell them apart.
    bugs = {frozenset(_bugsinpy_facts(file).items()): file.parent for file in root.glob("projects/*/bugs/*/bug.info")}
    if not bugs:
        raise TaskError(f"{path} is not a checkout of BugsInPy: it has no projects/PROJECT/bugs/ID/bug.info")
    place = root / "framework" / "bin" / "temp" if work is None else Path(work).resolve()
    notes = sorted(file for pattern in ("*", "*/*") for file in place.glob(f"{pattern}/{BUGSINPY_NOTE}"))
    if not notes:
        raise TaskError(f"{place} holds no bugs: check them out with bugsinpy-checkout -v 0, and give the option work=")
    return load_entries(notes, lambda note: _bugsinpy_bug(note, bugs), on_error)


def _bugsinpy_bug(note: Path, bugs: Mapping[frozenset[tuple[str, str]], Path]) -> tuple[Task, Oracle]:
    repository, facts = note.parent, _bugsinpy_facts(note)
    bug = bugs.get(frozenset(facts.items()))
    if bug is None:
        raise TaskError(f"task bugsinpy/{repository.name}: {note} names no bug in this checkout of BugsInPy")
    project = bug.parent.parent.name
    name = f"bugsinpy/{project}-{bug.name}"
    patch = _text(bug / "bug_patch.txt")
    with named(f"task {name}: bug_patch.txt"):
        parse_patch(patch)
    workspace = workspace_from_folder(
        repository, dict.fromkeys(sorted(file.name for file in repository.glob("bugsinpy_*")))
    )
    tests = [file for file in facts.get("test_file", "").split(";") if file]
    return _entry(name, project, workspace, _command(name, bug / "run_test.sh"), patch, tests)


def _bugsinpy_facts(file: Path) -> dict[str, str]:
    facts = dict(BUGSINPY_FACT.findall(_text(file)))
    if "buggy_commit_id" not in facts:
        raise TaskError(f"{file} has no buggy_commit_id")
    return facts


class _PyterInfo(BaseModel):
    """What bug_info.json says, as far as it is needed."""

    repo: str
    code_files: tuple[str, ...]
    test_files: tuple[str, ...] = ()


def load_pyter(
    path: str | Path, benchmark: str | Path | None = None, *, on_error: OnError = refuse
) -> list[tuple[Task, Oracle]]:
    """The bugs whose repositories are set up, sorted by name.

    PyTER's setup.sh checks out the fixed commit of each, with the code files of the commit before it.

    Args:
        path: a checkout of kupl/PyTER.
        benchmark: the folder that setup.sh made; by default `path`/benchmark.
        on_error: may take the error of a single bug.

    Raises:
        TaskError: `path` is something else, or no repository is set up.
    """
    root = Path(path).resolve()
    bugs = sorted(file.parent for file in root.glob("benchmark_info/*/*/bug_info.json"))
    if not bugs:
        raise TaskError(f"{path} is not a checkout of PyTER: it has no benchmark_info/PROJECT/BUG/bug_info.json")
    place = root / "benchmark" if benchmark is None else Path(benchmark).resolve()
    found: list[tuple[Path, Path]] = []
    for bug in bugs:
        project, _, number = bug.name.rpartition("-")
        repository = place / f"{PYTER_FOLDERS.get(project, project)}-{number}"
        if repository.is_dir():
            found.append((bug, repository))
    if not found:
        raise TaskError(f"{place} holds no repositories: make them with PyTER's setup.sh, and give benchmark=")
    return load_entries(found, lambda pair: _pyter_bug(*pair), on_error)


def _pyter_bug(bug: Path, repository: Path) -> tuple[Task, Oracle]:
    name = f"pyter/{bug.name}"
    try:
        info = _PyterInfo.model_validate_json(_read(bug / "bug_info.json"))
    except ValidationError as error:
        raise TaskError(f"task {name}: {bug / 'bug_info.json'}: {describe(error)}") from None
    with named(f"task {name}"):
        try:
            sides = {file: (_content(repository, file), _committed(repository, file)) for file in info.code_files}
        except (OSError, ValueError) as error:
            raise TaskError(f"git cannot read {repository}: {error}") from None
        patch = make_patch(sides)
    if not patch:
        raise TaskError(f"task {name}: the code files are those of the fixed commit: run PyTER's setup.sh again")
    workspace = workspace_from_folder(repository, dict.fromkeys(PYTER_FILES))
    return _entry(name, info.repo, workspace, _command(name, bug / "test.sh"), patch, info.test_files)


def _content(repository: Path, file: str) -> bytes | None:
    place = (repository / file).resolve()
    if not place.is_relative_to(repository):
        raise TaskError(f"{repository}: the code file {file} is outside of it")
    return _read(place) if place.is_file() else None


def _committed(repository: Path, file: str) -> bytes | None:
    """The file as the commit that is checked out has it; None if it has no such file."""
    listed = run_git("ls-tree", "HEAD", "--", file, folder=repository)
    return run_git("cat-file", "blob", f"HEAD:{file}", folder=repository) if listed else None


def _entry(
    name: str,
    project: str,
    workspace: WorkspaceSpec,
    command: tuple[str, ...],
    patch: str,
    tests: Sequence[str] = (),
    fail_to_pass: tuple[str, ...] = (),
    **more: Any,
) -> tuple[Task, Oracle]:
    """One bug; `tests` are its test files."""
    facts: dict[str, Any] = {
        "problem_statement": f"Tests of {project} fail. Find the cause and repair it.\n",
        "readonly": tuple(f"/{file}" for file in tests),
        "limits": LIMITS,
        **more,
    }
    source = name.partition("/")[0]
    task = Task(id=name, source=source, workspace=workspace, entrypoint=command, tags={"project": project}, **facts)
    return task, Oracle(task_id=name, gold_patch=patch, fail_to_pass=fail_to_pass)


def _command(name: str, script: Path) -> tuple[str, ...]:
    command = command_of(_text(script))
    if not command:
        raise TaskError(f"task {name}: {script} runs nothing")
    return command


def command_of(script: str) -> tuple[str, ...]:
    """The command that a script of test commands stands for: its lines as one run of pytest or unittest, else a shell.

    unittest is made to list its tests, and their outcomes are read from that list. An empty script is an empty command.
    """
    commands = [_plain(words) for line in script.splitlines() if (words := _words(line))]
    kinds = {command[:3] for command in commands}
    if kinds <= {("python", "-m", "pytest")} or kinds <= {("python", "-m", "unittest")}:
        arguments = (word for command in commands for word in command[3:])
        kept = dict.fromkeys(word for word in arguments if word not in ("-q", "--quiet"))
        flags = ("-q",) if kinds == {("python", "-m", "pytest")} else ("-v",)
        return (*kinds.pop(), *flags, *kept) if kinds else ()
    return ("sh", "-ec", script.strip())


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _plain(words: list[str]) -> tuple[str, ...]:
    """The command with the interpreter and the runner under their usual names."""
    while words[0] in ("poetry", "run") and len(words) > 1:
        words = words[1:]
    if words[0] in ("pytest", "py.test"):
        return ("python", "-m", "pytest", *words[1:])
    if words[0] in ("python", "python3") and words[1:2] == ["-m"] and words[2:3] and words[2] in ("pytest", "py.test"):
        return ("python", "-m", "pytest", *words[3:])
    return ("python", *words[1:]) if words[0] == "python3" else tuple(words)


def _text(file: Path) -> str:
    return _read(file).decode("utf-8", "surrogateescape")


def _read(file: Path) -> bytes:
    return read_bounded(file, MAX_BYTES, error=TaskError)
