"""Git on repositories that nobody trusts, on this machine and in sandboxes.

`run_git` and `Repositories` work on this machine. `remove_future` works in a sandbox: a repository that is checked out
at the commit before a fix often still holds the fix, in branches, tags, stashes, the reflog, or as loose and packed
objects that nothing points at. It leaves the history of one commit and nothing else.
"""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from gumshoe.errors import SandboxError, TaskError
from gumshoe.protocols import Sandbox
from gumshoe.records import ExecResult, Task

TIMEOUT_S = 600.0
# A repository's own hooks and helpers stay unused, and so do a person's settings.
GIT = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.autocrlf=false"),
    *("-c", "safe.directory=*"),
)
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file:https:http:ssh:git",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
HANDED_ON = ("SSL_CERT_FILE", "GIT_SSL_CAINFO", "HTTPS_PROXY", "HTTP_PROXY", "SSH_AUTH_SOCK")
"""Variables that a clone may need."""


def run_git(*words: str, folder: Path | None = None, input: bytes = b"") -> bytes:
    """What git prints; it is run in a folder of a repository, unless the words of the command name the repository.

    Raises TaskError, with the last line that git prints: it fails, or takes more than 600 s.
    """
    place = () if folder is None else ("-C", str(folder))
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, **ENVIRONMENT}
        environment |= {name: os.environ[name] for name in HANDED_ON if name in os.environ}
        argv = [*GIT, *place, *words]
        try:
            result = subprocess.run(
                argv, input=input, capture_output=True, env=environment, timeout=TIMEOUT_S, check=False
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise _failure(folder, str(error)) from None
    if result.returncode != 0:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {result.returncode}"]
        raise _failure(folder, lines[-1])
    return result.stdout


def _failure(folder: Path | None, why: str) -> TaskError:
    return TaskError(f"git cannot read {'the repository' if folder is None else folder}: {why}")


class Repositories:
    """A folder of git repositories, bare or not: `owner/name.git`, `owner__name.git` or `name.git`, or without .git.

    A task's tags `project` and `base_commit` say which one it needs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, task: Task) -> Path | None:
        """The repository that has the task's base commit; None where none has."""
        project, commit = task.tags.get("project", ""), task.tags.get("base_commit", "")
        if not project or not commit or commit.startswith("-") or ".." in project.split("/"):
            return None
        names = dict.fromkeys((project, project.replace("/", "__"), project.rpartition("/")[2]))
        places = (self._folder / f"{name}{end}" for name in names for end in (".git", ""))
        return next((place for place in places if place.is_dir() and _has(place, commit)), None)

    def read(self, task: Task, paths: Iterable[str]) -> dict[str, str | None]:
        """Files at the task's base commit; None for one that is not there, or is not UTF-8.

        Raises TaskError where no repository has the commit, or git fails.
        """
        repository, commit = self.find(task), task.tags.get("base_commit", "")
        if repository is None:
            raise TaskError(f"{task.id}: no repository in {self._folder} has the commit {commit or 'of the task'}")
        wanted = [path for path in paths if "\n" not in path]
        asked = "".join(f"{commit}:{path}\n" for path in wanted).encode("utf-8", "surrogateescape")
        answer = io.BytesIO(run_git("cat-file", "--batch", folder=repository, input=asked))
        return {path: _blob(answer) for path in wanted}


def _has(repository: Path, commit: str) -> bool:
    try:
        return bool(run_git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", folder=repository))
    except TaskError:
        return False


def _blob(answer: io.BytesIO) -> str | None:
    """The next object of `git cat-file --batch`; None where it is missing, or is not text."""
    head = answer.readline().split()
    if len(head) != 3 or not head[2].isdigit():
        return None
    content = answer.read(int(head[2]))
    answer.readline()
    try:
        return content.decode("utf-8") if head[1] == b"blob" else None
    except UnicodeDecodeError:
        return None


BRANCH = "main"
POINTERS = ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "AUTO_MERGE")
# Removed like the pointers: they lead to other commits, as logs do, or could bring some back, as hooks may.
LEFTOVERS = (
    *("logs", "refs/original", "worktrees", "modules", "lost-found", "rr-cache", "objects/info/alternates"),
    "hooks",
)
SUBMODULE = "160000 "
# Counted inside: a large repository's list of objects is long.
COUNT_UNREACHABLE = """\
import subprocess, sys
def names(*arguments):
    text = subprocess.check_output(("git", "-c", "safe.directory=*") + arguments)
    return {line.split()[0] for line in text.splitlines() if line}
held = names("cat-file", "--batch-check", "--batch-all-objects")
print(len(held - names("rev-list", "--objects", sys.argv[1])))
"""


def remove_future(sandbox: Sandbox) -> None:
    """Leaves HEAD and its ancestors in the workspace's repository, on one branch, and no other object.

    The working tree is not touched; what differed from HEAD before still does. A repository that has no commit is
    removed. Raises SandboxError: git failed, is missing, or something later than HEAD can still be reached.
    """
    if not any(entry.path == ".git" and entry.kind == "dir" for entry in sandbox.walk(depth=1)):
        return
    if _is_unborn(sandbox):
        # Nothing is committed yet, so nothing that the repository holds is the past of what is checked out.
        _check(sandbox.run(["rm", "-rf", "--", ".git"], timeout=TIMEOUT_S), "rm")
        return
    base = _git_inside(sandbox, "rev-parse", "--verify", "HEAD^{commit}").strip()
    _git_inside(sandbox, "update-ref", "--no-deref", "HEAD", base)
    refs = _git_inside(sandbox, "for-each-ref", "--format=%(refname)").split()
    if refs:
        _git_inside(sandbox, "update-ref", "--no-deref", "--stdin", input="".join(f"delete {ref}\n" for ref in refs))
    _git_inside(sandbox, "update-ref", f"refs/heads/{BRANCH}", base)
    _git_inside(sandbox, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    for remote in _git_inside(sandbox, "remote").split():
        _git_inside(sandbox, "remote", "remove", remote)
    leftovers = [f".git/{name}" for name in (*POINTERS, *LEFTOVERS)]
    # A submodule's own repository is gone with `modules`; without its link, git takes the files as they are.
    leftovers += [f"{path}/.git" for path in _submodules(sandbox)]
    _check(sandbox.run(["rm", "-rf", "--", *leftovers], timeout=TIMEOUT_S), "rm")
    _git_inside(sandbox, "reset", "--quiet", "--mixed", base)
    _git_inside(sandbox, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    kept = ["find", ".git/objects/pack", "-name", "*.keep", "-delete"]
    _check(sandbox.run(kept, timeout=TIMEOUT_S), "find")
    _git_inside(sandbox, "gc", "--quiet", "--prune=now")
    _verify(sandbox, base)


def _is_unborn(sandbox: Sandbox) -> bool:
    """Whether HEAD is a branch that has no commit yet, as after `git init`."""
    branch = _run_inside(sandbox, "symbolic-ref", "--quiet", "HEAD")
    named = branch.output.strip()
    return branch.exit_code == 0 and _run_inside(sandbox, "rev-parse", "--quiet", "--verify", named).exit_code == 1


def _submodules(sandbox: Sandbox) -> list[str]:
    """The folders that the index lists as submodules."""
    entries = [entry.partition("\t") for entry in _git_inside(sandbox, "ls-files", "--stage", "-z").split("\0")]
    return [path for facts, _, path in entries if facts.startswith(SUBMODULE)]


def _verify(sandbox: Sandbox, base: str) -> None:
    """Raises SandboxError when the repository holds an object that the commit does not lead to."""
    result = sandbox.run([sandbox.python, "-c", COUNT_UNREACHABLE, base], env=ENVIRONMENT, timeout=TIMEOUT_S)
    left = int(_check(result, "counting git objects").split()[-1])
    if left:
        raise SandboxError(f"{left} git objects later than {base[:12]} could not be removed")


def _git_inside(sandbox: Sandbox, *arguments: str, input: str | None = None) -> str:
    """What git prints. Raises SandboxError when it fails."""
    return _check(_run_inside(sandbox, *arguments, input=input), f"git {arguments[0]}")


def _run_inside(sandbox: Sandbox, *arguments: str, input: str | None = None) -> ExecResult:
    """Hooks, the user's settings and prompts are kept out."""
    argv = [*GIT, "-c", "gc.auto=0", *arguments]
    data = None if input is None else input.encode()
    return sandbox.run(argv, input=data, env=ENVIRONMENT, timeout=TIMEOUT_S)


def _check(result: ExecResult, doing: str) -> str:
    if result.exit_code != 0:
        why = result.output.strip().splitlines()[-1:] or [f"exit code {result.exit_code}"]
        raise SandboxError(f"the future of the git repository cannot be removed: {doing}: {why[0]}")
    return result.output
