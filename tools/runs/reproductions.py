"""Where the reproduction of an issue is, and how it is run: with pytest, Django's `runtests.py` or unittest."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Iterator, Sequence

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Reproduction, TestRun
from gumshoe.tools.runs.commands import is_pytest, python_words
from gumshoe.tools.runs.tracebacks import with_frames

NAME = "test_reproduction"
HANDED_OVER_BYTES = 4 << 10
"""A longer test is not part of a report: it would cost its reader more than the rest."""
RUN_TIMEOUT_S = 60.0
"""Seconds that a reproduction may take; it is small, or the issue is that something never ends."""
_TIMEOUT_S = 60.0
FOLDERS = ("tests/", "test/", "testing/")
_HAS_PYTEST = "import importlib.util, sys; sys.exit(importlib.util.find_spec('pytest') is None)"
_WITH_VALUE = ("-p", "-c", "-o", "-W", "--rootdir", "--confcutdir", "--import-mode", "--override-ini", "--config-file")
_CHOOSING = (
    "--deselect",
    "--ignore",
    "--ignore-glob",
    "--maxfail",
    "--junitxml",
    "--junit-xml",
    "--durations",
    "--cov",
)

FUNCTIONS_AS_TESTS = """

# Added here, where there is no pytest: unittest runs the functions, too.
import unittest as _unittest

Functions = type(
    "Functions",
    (_unittest.TestCase,),
    {
        _name: staticmethod(_test)
        for _name, _test in list(globals().items())
        if _name.startswith("test") and type(_test) is type(lambda: None)
    },
)
"""


def plan_reproduction(workspace: Workspace) -> Reproduction:
    """Where the file is to lie, and the command that runs it alone, as the project's own tests are run.

    pytest runs it where the sandbox has it, whatever runs the project's tests, since all tools can follow it; only
    Django's tests need their own runner, which sets up the settings and the database.
    """
    own = workspace.task.entrypoint
    runner = next((index for index, word in enumerate(own) if posixpath.basename(word) == "runtests.py"), None)
    if runner is not None:
        return _django_reproduction(workspace, own[: runner + 1], own[runner + 1 :])
    path = _unused_path(workspace, _folder_of_tests(workspace))
    words = python_words(own)
    python = own[:words] or ("python",)
    if is_pytest(own):
        start = words + (2 if own[words] == "-m" else 1)
        return Reproduction(path=path, files=(path,), entrypoint=(*own[:start], *_options(own[start:]), path))
    if workspace.sandbox.run([*python, "-c", _HAS_PYTEST], timeout=_TIMEOUT_S).exit_code == 0:
        return Reproduction(path=path, files=(path,), entrypoint=(*python, "-m", "pytest", "-q", path))
    path = _unused_path(workspace, "")
    module = path.removesuffix(".py")
    return Reproduction(path=path, files=(path,), entrypoint=(*python, "-m", "unittest", "-v", module))


def reproduction_text(workspace: Workspace) -> str:
    """The test as the agent wrote it; empty where there is none, or where it is too long for a report."""
    if workspace.reproduction is None:
        return ""
    try:
        text = workspace.read_text(workspace.reproduction.path).removesuffix(FUNCTIONS_AS_TESTS)
    except ToolFailure:
        return ""
    data = text.encode("utf-8", "replace")
    return data.decode() if len(data) <= HANDED_OVER_BYTES else ""


def run_reproduction(workspace: Workspace) -> TestRun:
    """Runs the test, with the frames of its failures."""
    limit = min(RUN_TIMEOUT_S, workspace.task.limits.command_timeout_s)
    return with_frames(workspace.run_tests(limit, warm=True, tracebacks=False), workspace)


def _django_reproduction(workspace: Workspace, program: Sequence[str], options: Sequence[str]) -> Reproduction:
    """A package beside the project's own test packages: an application, whose models get their tables."""
    tests = posixpath.dirname(program[-1]).removeprefix("./")
    folder = posixpath.dirname(_unused_path(workspace, posixpath.join(tests, ""), "/tests.py"))
    files = tuple(f"{folder}/{name}.py" for name in ("tests", "__init__", "models"))
    settings = [word for word in options if word.startswith("--settings=")]
    label = f"{posixpath.basename(folder)}.tests"
    return Reproduction(
        path=files[0],
        files=files,
        entrypoint=(*program, "--verbosity", "2", *settings, "--parallel", "1", label),
    )


def _folder_of_tests(workspace: Workspace) -> str:
    """The folder, with its slash, whose `conftest.py` the project's own tests need; empty for the root."""
    for folder in FOLDERS:
        try:
            workspace.sandbox.read_file(f"{folder}conftest.py")
        except OSError:
            continue
        return folder
    return ""


def _unused_path(workspace: Workspace, folder: str, ending: str = ".py") -> str:
    """NAME between a folder, with its slash, and an ending; with a number where the project has such a file."""
    for number in itertools.chain([""], map("_{}".format, itertools.count(2))):
        path = f"{folder}{NAME}{number}{ending}"
        try:
            workspace.sandbox.read_file(path)
        except FileNotFoundError:
            return path
        except OSError:
            pass  # A folder of that name, or something else that is there.
    raise AssertionError  # The numbers do not end.


def _options(words: Sequence[str]) -> Iterator[str]:
    """The options that say how pytest runs tests, not which, and not how they are shown."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            yield from (word, next(rest, ""))
        elif _says_how(word):
            yield word


def _says_how(word: str) -> bool:
    if word.startswith("--"):
        return word.startswith("--no") or ("=" in word and not word.startswith(_CHOOSING))
    return word == "-q" or word[:2] in _WITH_VALUE
