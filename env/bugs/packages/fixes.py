"""Bugs that people made: what a repository was like before each commit that repaired code and tested the repair.

A commit that changes code and tests alike is a candidate. Its bug is the parent's tree with the commit's tests in it,
and the rest of the commit is the gold patch: whether these tests fail there and pass with the patch, is found out by
running them (see `history.py`).
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pathspec

from gumshoe.env.bugs.candidates import CodePosition
from gumshoe.env.bugs.packages.sources import unpack
from gumshoe.env.diff import GitBlob, gold_lines, make_patch, parse_patch
from gumshoe.env.git import run_git
from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.errors import TaskError
from gumshoe.tools.code.functions import MODULE, enclosing, spans

# A commit that changes more lines of code is a feature or a clean-up.
MAX_CHANGED_LINES = 200
COMMIT, FIELD, FACTS = "\x01", "\x02", "\x03"
# What git's messages say besides what was wrong.
TRAILER = re.compile(
    r"^(?:[A-Z][\w-]+-by:|Merge |Change-Id:|(?:[Ff]ix(?:es)?|[Cc]loses?|[Rr]ef\w*)\b[:\s]*\S*#?\d+\.?$)"
)
REFERENCE = re.compile(r"\s*(?:\((?:#|GH-?|gh-?|PR )\d+\)|(?:#|GH-|gh-)\d+)")
WORD = re.compile(r"\w{3,}")
MESSAGE_LINES = 6
DATA_ENDINGS = (".json", ".tab", ".csv", ".pyi", ".cfg", ".ini", ".toml", ".xml", ".html", ".jinja", ".lark", ".tmpl")


@dataclass(frozen=True)
class Fix:
    """A commit compared with its first parent: for a merge, everything that it brought in.

    Attributes:
        date: when it was committed, as YYYY-MM-DD.
        code: the changed Python files that are not tests, and data beside them.
        tests: the changed files of tests.
    """

    commit: str
    parent: str
    date: str
    message: str
    code: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def test_modules(self) -> tuple[str, ...]:
        """The changed files that pytest may collect."""
        return tuple(
            path
            for path in self.tests
            if path.endswith(".py") and path.rpartition("/")[2] not in ("conftest.py", "__init__.py")
        )


@dataclass(frozen=True)
class FixFiles:
    """What a fix changes in the code, by path: what is there before and after it; None where there is no file."""

    changes: Mapping[str, tuple[GitBlob | None, GitBlob | None]]

    @cached_property
    def gold_patch(self) -> str:
        """The fix."""
        return make_patch(self.changes)

    @property
    def overlay(self) -> dict[str, str | None]:
        """What repairs the tree. Raises TaskError for a file that is not UTF-8."""
        try:
            return {path: None if new is None else new.decode() for path, (_, new) in self.changes.items()}
        except UnicodeDecodeError as error:
            raise TaskError(f"a changed file is not UTF-8: {error}") from None

    @cached_property
    def places(self) -> tuple[CodePosition, ...]:
        """The functions that are changed; of a file without one, the module."""
        found: list[CodePosition] = []
        for path, lines in gold_lines(self.gold_patch).items():
            old = self.changes[path][0]
            known = spans((old or b"").decode("utf-8", "replace")) or ()
            names = dict.fromkeys(enclosing(known, line) for line in sorted(lines))
            found += [(path, name) for name in names if name != MODULE] or [(path, "")]
        return tuple(found)

    @property
    def tags(self) -> dict[str, str]:
        """What kind of change it is: how many files and functions it touches, and whether it only adds lines."""
        functions = [place for place in self.places if place[1]]
        signs = {sign for sign, _ in self._lines()}
        kind = "changes" if len(signs) == 2 else "adds" if "+" in signs else "removes"
        return {"files": str(len(self.changes)), "functions": str(len(functions)), "change": kind}

    @property
    def giveaways(self) -> set[str]:
        """Names that tell the place: those of changed functions and files, and of identifiers in the changed lines and
        of other functions in the changed files.
        """
        names = {part for _, symbol in self.places for part in symbol.split(".")}
        names |= {path.rpartition("/")[2].partition(".")[0] for path in self.changes}
        texts = ((old or b"").decode("utf-8", "replace") for old, _ in self.changes.values())
        defined = {part for text in texts for span in spans(text) or () for part in span.name.split(".")}
        words = {word for _, line in self._lines() for word in WORD.findall(line)}
        return names | {word for word in words | defined if _is_identifier(word)}

    def _lines(self) -> Iterator[tuple[str, str]]:
        """The added and removed lines, each with its sign."""
        for file in parse_patch(self.gold_patch):
            yield from ((line.line_type, line.value) for hunk in file.hunks for line in hunk if not line.is_context)


def _is_identifier(word: str) -> bool:
    """Whether a word is one that only code has: with an underscore inside, or with capitals after its first letter."""
    return "_" in word.strip("_") or word not in (word.lower(), word.capitalize())


class Commit(NamedTuple):
    """A commit: its name, date, parents and message, and how many lines it changes, by file."""

    name: str
    date: str
    parents: list[str]
    message: str
    changed: dict[str, int]


class History:
    """The history of a bare clone. All methods raise TaskError if git fails."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository

    def fixes(self, count: int, exclude: Sequence[str]) -> tuple[list[Fix], Counter[str]]:
        """The candidates among the latest commits of the main line, newest first, and why the others are none.

        Args:
            count: how many commits are looked at.
            exclude: gitignore patterns of files that are not the project's code.
        """
        spec = pathspec.GitIgnoreSpec.from_lines(exclude)
        fixes: list[Fix] = []
        others: Counter[str] = Counter()
        for commit in self._commits(count):
            python = {path: lines for path, lines in commit.changed.items() if path.endswith(".py")}
            tests = tuple(path for path in commit.changed if holds_tests(path))
            code = {path: lines for path, lines in python.items() if path not in tests and not spec.match_file(path)}
            if not commit.parents:
                others["first commit"] += 1
            elif not code:
                others["no code"] += 1
            elif python.keys().isdisjoint(tests):
                others["no tests"] += 1
            elif sum(code.values()) > MAX_CHANGED_LINES:
                others[f"over {MAX_CHANGED_LINES} lines"] += 1
            else:
                data = (path for path in commit.changed if path not in tests and _is_data(path, code))
                code_and_data = (*code, *data)
                fixes.append(Fix(commit.name, commit.parents[0], commit.date, commit.message, code_and_data, tests))
        return fixes, others

    def _commits(self, count: int) -> Iterator[Commit]:
        """The latest commits of the main line, newest first."""
        options = ("--first-parent", "-m", "--numstat", "--no-renames", "--no-ext-diff", "--no-textconv")
        form = f"--format={COMMIT}%H %cs %P{FIELD}%B{FACTS}"
        words = ("-c", "core.quotePath=false", "log", *options, form, f"--max-count={count}", "HEAD")
        log = run_git(*words, folder=self._repository)
        for part in log.decode("utf-8", "surrogateescape").split(COMMIT)[1:]:
            names, _, rest = part.partition(FIELD)
            message, _, changes = rest.partition(FACTS)
            rows = [line.split("\t", 2) for line in changes.splitlines() if line.count("\t") >= 2]
            name, date, *parents = names.split()
            changed = {path: _number(added) + _number(gone) for added, gone, path in rows}
            yield Commit(name, date, parents, message, changed)

    def files(self, fix: Fix) -> FixFiles:
        """The code before and after a fix."""
        before, after = (self._blobs(commit, fix.code) for commit in (fix.parent, fix.commit))
        return FixFiles({path: (before.get(path), after.get(path)) for path in fix.code})

    def _blobs(self, commit: str, paths: Iterable[str]) -> dict[str, GitBlob]:
        """The files of a commit among `paths`."""
        listed = run_git("ls-tree", "-z", "--full-tree", commit, "--", *paths, folder=self._repository)
        found: dict[str, GitBlob] = {}
        for entry in listed.decode("utf-8", "surrogateescape").split("\0")[:-1]:
            facts, _, path = entry.partition("\t")
            mode, kind, name = facts.split()
            if kind == "blob":
                found[path] = GitBlob(run_git("cat-file", "blob", name, folder=self._repository), mode)
        return found

    def write_tree(self, fix: Fix, folder: Path) -> Path:
        """Writes the tree that has the bug into a new folder: the parent's, with the tests of the fix.

        Nothing of git is in it. Raises TaskError for a tree that is too large, too.
        """
        # Tests are often left out of archives, and versions written into them.
        attributes = self._repository / "info/attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("* -export-ignore -export-subst\n")
        shutil.rmtree(folder, ignore_errors=True)
        archive = folder.with_name(f"{folder.name}.tar")
        words = ("archive", "--format=tar", "--prefix=tree/", "-o", str(archive), fix.parent)
        run_git(*words, folder=self._repository)
        tree = unpack(archive, folder)
        archive.unlink()
        tests = self._blobs(fix.commit, fix.tests)
        for path in fix.tests:
            target = tree / path
            if path in tests and tests[path].mode != "120000" and not target.is_symlink():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(tests[path])
            elif path not in tests:
                target.unlink(missing_ok=True)
        return tree


def _number(count: str) -> int:
    """A count of numstat, which has a dash for a binary file."""
    return int(count) if count.isdigit() else 0


def _is_data(path: str, code: Collection[str]) -> bool:
    """Whether a file is data of the packages whose code is changed."""
    folders = {name.partition("/")[0] for name in code if "/" in name}
    return path.endswith(DATA_ENDINGS) and path.partition("/")[0] in folders


def symptom_of(message: str, giveaways: Set[str]) -> str:
    """What a commit's message says of the symptom: its lines without those that name what gives the place away."""
    lines = (REFERENCE.sub("", line).rstrip() for line in message.splitlines() if not TRAILER.match(line))
    kept = [line for line in lines if giveaways.isdisjoint(re.findall(r"\w+", line))]
    while kept and not kept[0].strip():
        del kept[0]
    return "\n".join(kept[:MESSAGE_LINES]).strip()
