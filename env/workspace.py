"""The repository as the agent may see it: `protocols.Workspace`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

from gumshoe.env.diff import make_patch
from gumshoe.env.patterns import Patterns
from gumshoe.errors import ToolFailure, WorkspaceDamaged
from gumshoe.protocols import Sandbox
from gumshoe.records import Edit, Entry, Match, Reproduction, Task, TestRun
from gumshoe.tools.runs.commands import NO_TRACEBACKS, python_behind
from gumshoe.tools.runs.outcomes import outcomes_of, plan_launch, record_variables

HIDE_FILE, READONLY_FILE = ".debugignore", ".debugreadonly"
ALWAYS_HIDDEN = (
    ".git/",
    "__pycache__/",
    "*.py[cod]",
    ".pytest_cache/",
    ".hypothesis/",
    f"/{HIDE_FILE}",
    f"/{READONLY_FILE}",
)


class Workspace:
    """A task's repository in a sandbox, from the moment this object is made.

    What the agent sees and may write is decided by the gitignore patterns of the task and of the files `.debugignore`
    and `.debugreadonly` in the repository's root, as they were when the episode began. Hidden paths are hidden from
    the tools that read and list; programs that the agent runs can still open them.

    Attributes:
        edits: what `write_text` has changed, in order; not the files of a reproduction, nor what programs have changed.
            `restore` leaves them as they are.
        reproduction: the test of an issue that the tools run in the place of the task's, if one was written.
    """

    def __init__(self, task: Task, sandbox: Sandbox) -> None:
        self.task = task
        self.sandbox: Sandbox = sandbox
        self.edits: list[Edit] = []
        self.reproduction: Reproduction | None = None
        self._debug_entrypoint: tuple[str, ...] | None = None
        self._hidden = Patterns([*ALWAYS_HIDDEN, *self._pattern_file(HIDE_FILE), *task.ignore])
        self._readonly = Patterns([*self._pattern_file(READONLY_FILE), *task.readonly])
        self._untracked = Patterns(self._pattern_file(".gitignore"))
        self._base = sandbox.snapshot()

    @property
    def entrypoint(self) -> tuple[str, ...]:
        """The argv that the tools run: that of the reproduction, or the task's."""
        return self.task.entrypoint if self.reproduction is None else self.reproduction.entrypoint

    @property
    def debug_entrypoint(self) -> tuple[str, ...]:
        """The argv that the debugger, and the tools that follow what runs, start: the task's, or what tox or a launcher
        runs.
        """
        if self.reproduction is not None:
            return self.entrypoint
        if self._debug_entrypoint is None:
            task = self.task
            self._debug_entrypoint = (
                task.debug_entrypoint or python_behind(self.sandbox, task.entrypoint) or task.entrypoint
            )
        return self._debug_entrypoint

    def read_text(self, path: str) -> str:
        """The file's text; bytes that are not UTF-8 are kept as surrogate escapes."""
        return self._read_visible(path).decode("utf-8", "surrogateescape")

    def write_text(self, path: str, text: str) -> Edit:
        """Replaces or makes a file and records the edit. Raises ToolFailure for a read-only path."""
        clean = self._visible(path)
        if self.is_readonly(clean):
            raise ToolFailure("read_only", f"{clean} is read-only.")
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise ToolFailure("bad_text", "The text contains characters that cannot be encoded as UTF-8.") from None
        before = self._read_if_there(clean)
        with _failures(clean):
            self.sandbox.write_file(clean, data)
        edit = Edit(path=clean, before=before, after=text)
        self.edits.append(edit)
        return edit

    def write_reproduction(self, reproduction: Reproduction, texts: Mapping[str, str]) -> list[Edit]:
        """Writes the files of a reproduction, which the tools run from now on.

        They can be seen and written whatever the patterns say, and are not part of a patch. Raises ToolFailure, as
        `write_text`; then the reproduction before it is kept.
        """
        before, self.reproduction = self.reproduction, reproduction
        first = len(self.edits)
        try:
            for path, text in texts.items():
                self.write_text(path, text)
        except ToolFailure:
            self.reproduction = before
            raise
        finally:
            written = self.edits[first:]
            del self.edits[first:]
        return written

    def list(self, path: str = ".", depth: int | None = None) -> list[Entry]:
        """Everything below a folder that is not hidden, sorted."""
        clean = self._visible(path)
        with _failures(clean):
            return self.sandbox.walk(clean, ignore=self._hidden.pairs, depth=depth)

    def grep(self, pattern: str, path: str = ".", *, limit: int = 200) -> tuple[list[Match], bool]:
        """Lines of visible text files that a regular expression matches, and whether there were more."""
        clean = self._visible(path)
        with _failures(clean):
            try:
                return self.sandbox.grep(pattern, clean, ignore=self._hidden.pairs, limit=limit)
            except ValueError as error:
                raise ToolFailure("bad_pattern", f"{pattern!r} is not a regular expression: {error}.") from None

    def snapshot(self) -> str:
        """Keeps the files as they are now, hidden ones too; the name is for `restore`."""
        return self.sandbox.snapshot()

    def restore(self, snapshot: str) -> list[Edit]:
        """Puts the files back as they were, and returns what that changed; where that is too much to report, the
        files that tools have edited, without their texts. Raises SandboxError: no such snapshot.
        """
        try:
            changes = self.sandbox.changes(snapshot)
        except WorkspaceDamaged:
            changes = {edit.path: (None, None) for edit in self.edits}
        self.sandbox.restore(snapshot)
        return [
            Edit(path=path, before=_decoded(now), after=_decoded(then))
            for path, (then, now) in sorted(changes.items())
            if now != then
        ]

    def run_tests(
        self,
        timeout: float | None = None,
        *,
        plugins: Mapping[str, Mapping[str, str]] | None = None,
        warm: bool = False,
        tracebacks: bool = True,
    ) -> TestRun:
        """Puts the read-only files and our pytest plugin back, then runs `entrypoint`.

        Outcomes of single tests are known for pytest, unittest, and the runners of Django and sympy.

        Args:
            timeout: seconds; None takes the task's limit for one command. Outcomes up to it are kept.
            plugins: modules of `env/inside` for pytest to load too, each with the environment variables that it reads.
            warm: whether it may be a fork of the test server.
            tracebacks: whether pytest prints them. What is known of single tests is the same without, and a run in
                which many fail takes a fraction of the time.

        Raises:
            ToolFailure: the files cannot be put back, because of what programs have done to the workspace or its disk.
        """
        sandbox = self.sandbox
        with _damage():
            self._put_back_readonly()
            sandbox.prepare_support()
        wanted = plugins or {}
        how = plan_launch(self.entrypoint, sandbox.support)
        result = sandbox.run(
            how.argv if how.recorded else self.entrypoint,  # Of what the recorder may not know, nothing is changed.
            env={
                **record_variables(sandbox, *wanted, options="" if tracebacks else NO_TRACEBACKS),
                **{name: value for variables in wanted.values() for name, value in variables.items()},
            },
            timeout=self.task.limits.command_timeout_s if timeout is None else timeout,
            warm=warm,
        )
        return TestRun(result=result, outcomes=outcomes_of(sandbox, how, result))

    def is_readonly(self, path: str) -> bool:
        """Whether the agent may not write there."""
        clean = self._clean(path)
        return self._readonly.match(clean) and not self._is_reproduction(clean)

    def patch(self) -> str:
        """What has changed since the episode began, in git's format: without hidden and read-only paths, and without
        new files that the repository's `.gitignore` leaves out, and without the reproduction of an issue.

        Raises ToolFailure when the changed files hold more than the sandbox config's `patch_mb`.
        """
        with _damage():
            changes = self.sandbox.changes(self._base, ignore=self._hidden.pairs, ignore_new=self._untracked.pairs)
        return make_patch({path: sides for path, sides in changes.items() if self._in_patch(path, sides[0])})

    def unpatched(self, names: Sequence[str]) -> dict[str, tuple[bytes | None, bytes | None]]:
        """Changed files that `patch` leaves out, except those in folders that are left out as a whole, such as build
        folders; each with its content before and after.

        Args:
            names: gitignore patterns of the file names that are looked at.

        Raises ToolFailure as `patch`.
        """
        wanted = Patterns(["*", "!*/", *(f"!{name}" for name in names), ".git/", "__pycache__/"])
        with _damage():
            changes = self.sandbox.changes(self._base, ignore=wanted.pairs)
        return {
            path: sides
            for path, sides in changes.items()
            if not self._in_patch(path, sides[0]) and not self._is_left_out(path.rpartition("/")[0])
        }

    def _put_back_readonly(self) -> None:
        """Restores the read-only files; a reproduction that lies among them stays as it is."""
        if self._readonly.pairs:
            files = self.reproduction.files if self.reproduction is not None else ()
            left = {f"{folder}/" for file in files for folder in map(str, PurePosixPath(file).parents)} | set(files)
            kept = [(False, f"{re.escape(path)}$") for path in sorted(left)]
            self.sandbox.restore(self._base, only=[*self._readonly.pairs, *kept])

    def _is_reproduction(self, path: str) -> bool:
        return self.reproduction is not None and path in self.reproduction.files

    def _is_hidden(self, clean: str, real: str) -> bool:
        if self._is_reproduction(clean) and real == clean:
            return False
        return self._hidden.match(clean) or self._hidden.match(real)

    def _in_patch(self, path: str, before: bytes | None) -> bool:
        left_out = self._hidden.match(path) or self._readonly.match(path) or self._is_reproduction(path)
        return not left_out and not (before is None and self._untracked.match(path))

    def _is_left_out(self, folder: str) -> bool:
        return bool(folder) and (self._hidden.match(folder) or self._untracked.match(folder))

    def _pattern_file(self, name: str) -> Sequence[str]:
        try:
            return self.sandbox.read_file(name).decode("utf-8", "replace").splitlines()
        except OSError:
            return ()

    def _clean(self, path: str) -> str:
        """The path relative to the root, without dots. Raises ToolFailure when it leads out."""
        relative = path.strip() or "."
        if relative.startswith("/"):
            inside = relative == self.sandbox.root or relative.startswith(f"{self.sandbox.root}/")
            if not inside:
                raise _outside(path)
            relative = posixpath.relpath(relative, self.sandbox.root)
        clean = posixpath.normpath(relative)
        if clean == ".." or clean.startswith("../"):
            raise _outside(path)
        return clean

    def _visible(self, path: str) -> str:
        """The cleaned path, if the agent may see it and what it leads to. Raises ToolFailure."""
        clean = self._clean(path)
        if clean == ".":
            return clean
        with _failures(clean):
            real = self.sandbox.real_path(clean)
        if self._is_hidden(clean, real):
            raise _hidden(clean)
        return clean

    def _read_visible(self, path: str) -> bytes:
        """The file's bytes, if the agent may see it; one exchange with the sandbox where nothing is wrong."""
        clean = self._clean(path)
        try:
            real, data = self.sandbox.read_real(clean)
        except OSError:
            return self._read(self._visible(path))  # What is hidden must look like what is not there.
        if self._is_hidden(clean, real):
            raise _hidden(clean)
        return data

    def _read(self, clean: str) -> bytes:
        with _failures(clean):
            return self.sandbox.read_file(clean)

    def _read_if_there(self, clean: str) -> str | None:
        try:
            return self._read(clean).decode("utf-8", "surrogateescape")
        except ToolFailure as failure:
            if failure.kind == "no_such_file":
                return None
            raise


def _decoded(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _hidden(clean: str) -> ToolFailure:
    return ToolFailure("no_such_file", f"There is no {clean}.")


def _outside(path: str) -> ToolFailure:
    return ToolFailure("outside_workspace", f"{path} is outside the repository; use a path relative to its root.")


@contextmanager
def _damage() -> Generator[None]:
    """Reports to the agent what programs have done to the workspace."""
    try:
        yield
    except WorkspaceDamaged as error:
        raise ToolFailure("workspace_damaged", f"{error}. Remove what you do not need, or restore it.") from None


@contextmanager
def _failures(path: str) -> Generator[None]:
    """Reports to the agent what the file system refused."""
    try:
        yield
    except FileNotFoundError:
        raise ToolFailure("no_such_file", f"There is no {path}.") from None
    except IsADirectoryError:
        raise ToolFailure("is_a_folder", f"{path} is a folder.") from None
    except NotADirectoryError:
        raise ToolFailure("not_a_folder", f"{path} is not a folder.") from None
    except PermissionError as error:
        raise ToolFailure("not_allowed", f"{path}: {error.strerror}.") from None
    except TimeoutError as error:
        raise ToolFailure("too_slow", f"{error.strerror}.") from None
    except OSError as error:
        raise ToolFailure("refused", f"{path}: {error.strerror}.") from None
