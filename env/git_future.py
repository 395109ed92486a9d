"""Taking the future out of a git repository.

A repository that is checked out at the commit before a fix often still holds the fix: in branches, tags, stashes, the
reflog, or as loose and packed objects that nothing points at. `remove_future` leaves the history of one commit and
nothing else.
"""

from __future__ import annotations

from gumshoe.errors import SandboxError
from gumshoe.protocols import Sandbox
from gumshoe.records import ExecResult

__all__ = ["remove_future"]

TIMEOUT_S = 600.0
BRANCH = "main"
POINTERS = ("FETCH_HEAD", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "AUTO_MERGE")
# What a hook or an alternate object store could bring back is refused as well as what the repository holds itself.
LEFTOVERS = (
    "logs",
    "refs/original",
    "worktrees",
    "modules",
    "lost-found",
    "rr-cache",
    "objects/info/alternates",
    "hooks",
)
SUBMODULE = "160000 "
ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
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
    removed.

    Raises:
        SandboxError: git failed, is missing, or something later than HEAD can still be reached.
    """
    if not any(entry.path == ".git" and entry.kind == "dir" for entry in sandbox.walk(depth=1)):
        return
    if _is_unborn(sandbox):
        # Nothing is committed yet, so nothing that the repository holds is the past of what is checked out.
        _check(sandbox.run(["rm", "-rf", "--", ".git"], timeout=TIMEOUT_S), "rm")
        return
    base = _git(sandbox, "rev-parse", "--verify", "HEAD^{commit}").strip()
    _git(sandbox, "update-ref", "--no-deref", "HEAD", base)
    refs = _git(sandbox, "for-each-ref", "--format=%(refname)").split()
    if refs:
        _git(sandbox, "update-ref", "--no-deref", "--stdin", input="".join(f"delete {ref}\n" for ref in refs))
    _git(sandbox, "update-ref", f"refs/heads/{BRANCH}", base)
    _git(sandbox, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")
    for remote in _git(sandbox, "remote").split():
        _git(sandbox, "remote", "remove", remote)
    leftovers = [f".git/{name}" for name in (*POINTERS, *LEFTOVERS)]
    # A submodule's own repository is gone with `modules`; without its link, git takes the files as they are.
    leftovers += [f"{path}/.git" for path in _submodules(sandbox)]
    _check(sandbox.run(["rm", "-rf", "--", *leftovers], timeout=TIMEOUT_S), "rm")
    _git(sandbox, "reset", "--quiet", "--mixed", base)
    _git(sandbox, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    kept = ["find", ".git/objects/pack", "-name", "*.keep", "-delete"]
    _check(sandbox.run(kept, timeout=TIMEOUT_S), "find")
    _git(sandbox, "gc", "--quiet", "--prune=now")
    _verify(sandbox, base)


def _is_unborn(sandbox: Sandbox) -> bool:
    """Whether HEAD is a branch that has no commit yet, as after `git init`."""
    branch = _run_git(sandbox, "symbolic-ref", "--quiet", "HEAD")
    named = branch.output.strip()
    return branch.exit_code == 0 and _run_git(sandbox, "rev-parse", "--quiet", "--verify", named).exit_code == 1


def _submodules(sandbox: Sandbox) -> list[str]:
    """The folders that the index lists as submodules."""
    entries = [entry.partition("\t") for entry in _git(sandbox, "ls-files", "--stage", "-z").split("\0")]
    return [path for facts, _, path in entries if facts.startswith(SUBMODULE)]


def _verify(sandbox: Sandbox, base: str) -> None:
    """Raises SandboxError when the repository holds an object that the commit does not lead to."""
    result = sandbox.run([sandbox.python, "-c", COUNT_UNREACHABLE, base], env=ENVIRONMENT, timeout=TIMEOUT_S)
    left = int(_check(result, "counting git objects").split()[-1])
    if left:
        raise SandboxError(f"{left} git objects later than {base[:12]} could not be removed")


def _git(sandbox: Sandbox, *arguments: str, input: str | None = None) -> str:
    """What git prints. Raises SandboxError when it fails."""
    return _check(_run_git(sandbox, *arguments, input=input), f"git {arguments[0]}")


def _run_git(sandbox: Sandbox, *arguments: str, input: str | None = None) -> ExecResult:
    """Hooks, the user's settings and prompts are kept out."""
    argv = ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", *arguments]
    data = None if input is None else input.encode()
    return sandbox.run(argv, input=data, env=ENVIRONMENT, timeout=TIMEOUT_S)


def _check(result: ExecResult, doing: str) -> str:
    if result.exit_code != 0:
        why = result.output.strip().splitlines()[-1:] or [f"exit code {result.exit_code}"]
        raise SandboxError(f"the future of the git repository cannot be removed: {doing}: {why[0]}")
    return result.output
