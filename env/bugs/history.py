"""Bugs that a project once had: the fixes in its history, reverted in the current code.

A fix is a commit that changes code and tests alike. Its change to the code is reversed where it still applies; whether
today's tests notice is for the verifier to say.
"""

from __future__ import annotations

import ast
import builtins
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import libcst as cst

from gumshoe.env.bugs.candidates import Bug, CodePosition, changed_lines
from gumshoe.env.bugs.operators.source import ParsedFile
from gumshoe.env.host_git import run_git
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.errors import TaskError
from gumshoe.tools.code.functions import MODULE, enclosing, spans

__all__ = ["HISTORY", "history_bugs", "offered_names", "unknown_names"]

HISTORY = "history"
# A commit that changes more lines is a feature or a clean-up.
MAX_CHANGED_LINES = 80
MARK = "\x01"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# What every module has besides the builtins.
GIVEN = {*dir(builtins), "__file__", "__class__", "__path__"}


@dataclass(frozen=True)
class Commit:
    """A commit compared with its first parent: for a merge, everything that it brought in.

    Attributes:
        code: the changed Python files that are not tests.
        lines: how many lines are added and removed in them.
        tested: whether it changes tests too.
    """

    name: str
    parent: str
    code: tuple[str, ...]
    lines: int
    tested: bool


def history_bugs(repository: Path, sources: Mapping[str, str], commits: int) -> list[Bug]:
    """The fixes among the latest commits that can be reverted, newest first, each as a bug of its own.

    A commit that added a public function, class, parameter or variable is left out: its tests would only miss that.

    Args:
        repository: a bare clone.
        sources: the texts of the files that may get bugs, by path.
        commits: how many commits of the main line are looked at.

    Raises:
        TaskError: git fails.
    """
    found: dict[str, Bug] = {}
    for commit in _commits(repository, commits):
        if commit.tested and commit.code and commit.lines <= MAX_CHANGED_LINES and sources.keys() >= {*commit.code}:
            bug = _bug(repository, commit, sources)
            if bug is not None:
                found.setdefault(bug.digest, bug)
    return list(found.values())


def _commits(repository: Path, count: int) -> Iterator[Commit]:
    options = ("--first-parent", "-m", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
    command = ("log", *options, f"--format={MARK}%H %P", f"--max-count={count}", "HEAD")
    log = run_git("--git-dir", str(repository), "-c", "core.quotePath=false", *command)
    for part in log.decode("utf-8", "surrogateescape").split(MARK)[1:]:
        names, *rows = part.splitlines()
        name, *parents = names.split()
        changes = [tuple(row.split("\t", 2)) for row in rows if row.count("\t") >= 2]
        if parents:
            yield _commit(
                name, parents[0], [(path, added, gone) for added, gone, path in changes if path.endswith(".py")]
            )


def _commit(name: str, parent: str, changes: Sequence[tuple[str, str, str]]) -> Commit:
    code = [change for change in changes if not holds_tests(change[0])]
    return Commit(
        name,
        parent,
        tuple(path for path, _, _ in code),
        sum(int(count) for _, *counts in code for count in counts if count.isdigit()),
        tested=len(code) < len(changes),
    )


def _bug(repository: Path, commit: Commit, sources: Mapping[str, str]) -> Bug | None:
    """Today's code without the fix; None where the fix cannot be taken out."""
    try:
        texts = {path: _without(repository, commit, path, sources[path]) for path in commit.code}
    except TaskError:
        return None
    files = {path: text for path, text in texts.items() if text != sources[path]}
    lines: dict[str, tuple[int, ...]] = {}
    places: list[CodePosition] = []
    for path, text in files.items():
        if not _is_fix(sources[path], text):
            return None
        lines[path] = _changed(sources[path], text)
        symbols = dict.fromkeys(enclosing(spans(sources[path]) or (), line) for line in lines[path])
        places += [(path, symbol) for symbol in symbols if symbol != MODULE] or [(path, "")]
    return Bug(HISTORY, files, lines, tuple(places), {"commit": commit.name[:12]}) if places else None


def _without(repository: Path, commit: Commit, path: str, text: str) -> str:
    """Today's file with a commit's changes to it reverted. Raises TaskError where this cannot be done.

    Merged by git: a patch with little context may fit in a wrong place, and one with much of it seldom fits at all.
    """
    with tempfile.TemporaryDirectory() as folder:
        today, after, before = (Path(folder, name) for name in ("today", "after", "before"))
        today.write_bytes(text.encode())
        for place, name in ((after, commit.name), (before, commit.parent)):
            place.write_bytes(run_git("--git-dir", str(repository), "show", "--no-textconv", f"{name}:{path}"))
        merged = run_git("merge-file", "--quiet", "-p", str(today), str(after), str(before))
    return merged.decode("utf-8", "surrogateescape")


def _changed(before: str, after: str) -> tuple[int, ...]:
    try:
        return changed_lines(ParsedFile(before), after)
    except cst.ParserSyntaxError:
        return ()


def _is_fix(clean: str, buggy: str) -> bool:
    """Whether the code without the change is whole: it offers what it does today, and lacks none of its own names."""
    try:
        now, then = ast.parse(clean), ast.parse(buggy)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return offered_names(now) <= offered_names(then) and unknown_names(then) <= unknown_names(now)


def offered_names(tree: ast.Module) -> set[str]:
    """Public functions, their parameters, classes and variables, qualified; a leading underscore makes one private."""
    return set(_offered(tree.body, ""))


def _offered(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            yield f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from _offered(node.body, f"{prefix}{node.name}.")
            else:
                yield from (f"{prefix}{node.name}({name})" for name in _parameters(node.args))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (target.id for target in targets if isinstance(target, ast.Name))
            yield from (f"{prefix}{name}" for name in names if not name.startswith("_"))


def _parameters(arguments: ast.arguments) -> list[str]:
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument.arg for argument in every if argument is not None]


def unknown_names(tree: ast.Module) -> set[str]:
    """Names that are read but bound nowhere in the file; none where an `import *` could bind any of them."""
    bound, read = set(GIVEN), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return set()
            bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            bound.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            bound.add(node.rest)
    return read - bound
