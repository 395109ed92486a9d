"""Published benchmarks, read from a checkout as their authors lay it out: QuixBugs, BugsInPy, PyTER and aider's.

| | a bug | its repository | the repair |
|---|---|---|---|
| QuixBugs | `python_programs/NAME.py` | the checkout | `correct_python_programs/NAME.py` |
| BugsInPy | `projects/PROJECT/bugs/ID/` | made by `bugsinpy-checkout`, with a note | `bug_patch.txt` |
| PyTER | `benchmark_info/PROJECT/BUG/` | made by `setup.sh` | what differs from its commit |
| aider | a folder with `.meta/config.json`: one of Exercism's exercises, without its solution | itself | in `.meta` |

What holds the repair (other folders, git's own folder, `.meta`, the benchmark's notes) is kept out of the sandbox.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ValidationError

from gumshoe.env.diff import make_patch, parse_patch
from gumshoe.env.git import run_git
from gumshoe.env.tasks.projects import PYTEST, workspace_from_folder
from gumshoe.env.tasks.taskset import OnError, load_entries, named, refuse
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, Task, WorkspaceSpec
from gumshoe.storage import describe, read_bounded

MAX_BYTES = 4 << 20
LIMITS = Limits(command_timeout_s=600)
# Several bugs of QuixBugs are loops that never end.
QUIXBUGS_LIMITS = Limits(command_timeout_s=20)
BUGGY, CORRECT, TESTS, DATA = "python_programs", "correct_python_programs", "python_testcases", "json_testcases"
FACT = re.compile(r'^(\w+)="([^"\n]*)"', re.MULTILINE)
PYTER_FILES = (".git", "dependency_setup.sh", "pyter_requirements.txt", "pyter")
# Where PyTER's setup.sh names a repository's folder differently from bug_info.json.
PYTER_FOLDERS = {"scikit-learn": "scikitlearn"}
# Where one of aider's exercises says what it consists of, and its texts in `.docs`.
META, CONFIG = ".meta", "config.json"
TEXTS = ("introduction.md", "instructions.md", "instructions.append.md")
RUNNERS: Mapping[tuple[str, ...], str] = {("python", "-m", "pytest"): "-q", ("python", "-m", "unittest"): "-v"}
"""Each with the option that it is run with; the outcomes of unittest are read from its list of tests."""


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
    task = Task(
        id=f"quixbugs/{name}",
        source="quixbugs",
        problem_statement=f"`{name}` gives wrong results, or never ends: `{' '.join(command)}` fails. Repair {file}.\n",
        workspace=workspace,
        entrypoint=command,
        readonly=(f"/{TESTS}/", f"/{DATA}/", "/conftest.py"),
        limits=QUIXBUGS_LIMITS,
        tags={"project": name},
    )
    # Blank lines and the text below the code differ for other reasons.
    gold = make_patch({file: (buggy, buggy.replace(_quixbugs_code(buggy), _quixbugs_code(correct), 1))})
    # A file's name stands for all of its tests; if some are always skipped, those that are known decide.
    failing = () if b"pytest.skip" in test_code else (tests,)
    return task, Oracle(task_id=task.id, gold_patch=gold, fail_to_pass=failing)


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
    notes = sorted(file for pattern in ("*", "*/*") for file in place.glob(f"{pattern}/bugsinpy_bug.info"))
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
    tests = filter(None, facts.get("test_file", "").split(";"))
    hidden = [file.name for file in repository.glob("bugsinpy_*")]
    return _bug_in_repository(name, project, repository, hidden, bug / "run_test.sh", patch, tests)


def _bugsinpy_facts(file: Path) -> dict[str, str]:
    return dict(FACT.findall(_text(file)))


class _PyterInfo(BaseModel):
    """What bug_info.json says, as far as it is needed."""

    repo: str
    code_files: tuple[str, ...]
    test_files: tuple[str, ...] = ()


def load_pyter(
    path: str | Path, benchmark: str | Path | None = None, *, on_error: OnError = refuse
) -> list[tuple[Task, Oracle]]:
    """The bugs whose repositories are set up, sorted by name.

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
    repositories = {bug: place / _pyter_folder(bug.name) for bug in bugs}
    found = [bug for bug in bugs if repositories[bug].is_dir()]
    if not found:
        raise TaskError(f"{place} holds no repositories: make them with PyTER's setup.sh, and give benchmark=")
    return load_entries(found, lambda bug: _pyter_bug(bug, repositories[bug]), on_error)


def _pyter_folder(bug: str) -> str:
    project, _, number = bug.rpartition("-")
    return f"{PYTER_FOLDERS.get(project, project)}-{number}"


def _pyter_bug(bug: Path, repository: Path) -> tuple[Task, Oracle]:
    name = f"pyter/{bug.name}"
    try:
        info = _PyterInfo.model_validate_json(_read(bug / "bug_info.json"))
    except ValidationError as error:
        raise TaskError(f"task {name}: {bug / 'bug_info.json'}: {describe(error)}") from None
    with named(f"task {name}"):
        # In reverse, so the prefixes are, too.
        options = ("-R", "--binary", "--no-ext-diff", "--no-textconv", "--src-prefix=b/", "--dst-prefix=a/")
        patch = run_git("diff", *options, "HEAD", "--", *info.code_files, folder=repository)
    if not patch:
        raise TaskError(f"task {name}: the code files are those of the fixed commit: run PyTER's setup.sh again")
    text = patch.decode("utf-8", "surrogateescape")
    return _bug_in_repository(name, info.repo, repository, PYTER_FILES, bug / "test.sh", text, info.test_files)


def _bug_in_repository(
    name: str, project: str, repository: Path, hidden: Iterable[str], script: Path, patch: str, tests: Iterable[str]
) -> tuple[Task, Oracle]:
    """A bug of BugsInPy or PyTER: the script runs its tests, which are in the files `tests`."""
    command = command_of(_text(script))
    if not command:
        raise TaskError(f"task {name}: {script} runs nothing")
    task = Task(
        id=name,
        source=name.partition("/")[0],
        problem_statement=f"Tests of {project} fail. Find the cause and repair it.\n",
        workspace=workspace_from_folder(repository, dict.fromkeys(sorted(hidden))),
        entrypoint=command,
        readonly=tuple(f"/{file}" for file in tests),
        limits=LIMITS,
        tags={"project": project},
    )
    return task, Oracle(task_id=name, gold_patch=patch)


def command_of(script: str) -> tuple[str, ...]:
    """The command that a script of test commands stands for: its lines as one run of pytest or unittest, else a shell.

    An empty script is an empty command.
    """
    try:
        commands = [_plain(words) for line in script.splitlines() if (words := shlex.split(line, comments=True))]
    except ValueError:
        return ("sh", "-ec", script.strip())
    runners = {command[:3] for command in commands}
    if len(runners) == 1 and runners <= RUNNERS.keys():
        (runner,) = runners
        words = dict.fromkeys(word for command in commands for word in command[3:] if word not in ("-q", "--quiet"))
        return (*runner, RUNNERS[runner], *words)
    return ("sh", "-ec", script.strip()) if commands else ()


def _plain(words: list[str]) -> tuple[str, ...]:
    """The command with the interpreter and the runner under their usual names."""
    if words[:2] == ["poetry", "run"]:
        words = words[2:]
    match words:
        case ["pytest" | "py.test", *rest] | ["python" | "python3", "-m", "pytest" | "py.test", *rest]:
            return ("python", "-m", "pytest", *rest)
        case ["python3", *rest]:
            return ("python", *rest)
        case _:
            return tuple(words)


class _ExerciseFiles(BaseModel):
    """The files of each role."""

    solution: list[str] = []
    test: list[str] = []
    example: list[str] = []


class _ExerciseConfig(BaseModel):
    """What an exercise's config says, as far as it is needed."""

    files: _ExerciseFiles


def load_aider(path: str | Path, *, on_error: OnError = refuse) -> list[tuple[Task, Oracle]]:
    """Every Python exercise below `path`, sorted by name: an empty solution, its tests, the text of the task.

    Args:
        path: a checkout of exercism/python or of Aider-AI/polyglot-benchmark, or any folder below it that holds
            exercises.

    Raises TaskError when there are none; `on_error` may take that of a single exercise.
    """
    root = Path(path).resolve()
    if not root.is_dir():
        raise TaskError(f"no folder {path}: give a checkout of Exercism's Python exercises")
    found = {file.parent.parent for file in root.rglob(f"{META}/{CONFIG}")}
    folders = sorted(folder for folder in found if any(folder.glob("*.py")))
    if not folders:
        raise TaskError(f"{path} holds no Python exercises: each has {META}/{CONFIG} and Python files")
    return load_entries(folders, _exercise, on_error)


def _exercise(folder: Path) -> tuple[Task, Oracle]:
    name = f"aider/{folder.name}"
    with named(f"task {name}"):
        files = _exercise_files(folder)
        gold = _exercise_gold(folder, files)
    texts = [folder / ".docs" / text for text in TEXTS]
    parts = [text.read_text(encoding="utf-8", errors="replace").strip() for text in texts if text.is_file()]
    wanted = (
        f"Write the solution in {', '.join(files.solution)}, so that the tests pass. Keep the names that stand there."
    )
    hidden = sorted(path.relative_to(folder).as_posix() for path in (folder / META).rglob("*") if path.is_file())
    task = Task(
        id=name,
        source="aider",
        problem_statement="\n\n".join([*parts, wanted]) + "\n",
        workspace=workspace_from_folder(folder, dict.fromkeys(hidden)),
        entrypoint=(*PYTEST, *files.test),
        readonly=tuple(f"/{file}" for file in files.test),
        tags={"project": folder.name},
    )
    return task, Oracle(task_id=name, gold_patch=gold)


def _exercise_files(folder: Path) -> _ExerciseFiles:
    """The files of an exercise, as its config names them. Raises TaskError."""
    path = folder / META / CONFIG
    try:
        files = _ExerciseConfig.model_validate_json(_read(path)).files
    except ValidationError as error:
        raise TaskError(f"{path} cannot be read: {describe(error)}") from None
    for role, names in (("solution", files.solution), ("test", files.test)):
        if not names:
            raise TaskError(f"{path} names no {role} files")
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise TaskError(f"its file {missing[0]} is missing")
    return files


def _exercise_gold(folder: Path, files: _ExerciseFiles) -> str:
    """The example put in place of the solution; empty where the two do not correspond."""
    if len(files.example) != len(files.solution):
        return ""
    pairs = zip(files.solution, files.example, strict=True)
    try:
        return make_patch(
            {name: ((folder / name).read_bytes(), (folder / other).read_bytes()) for name, other in pairs}
        )
    except (OSError, ValueError) as error:
        raise TaskError(f"its example cannot be read: {error}") from None


def _text(file: Path) -> str:
    return _read(file).decode("utf-8", "surrogateescape")


def _read(file: Path) -> bytes:
    return read_bounded(file, MAX_BYTES, error=TaskError)
