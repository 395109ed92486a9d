"""Activating the environment that an image keeps for its repository: once, for every program that runs there later."""

from __future__ import annotations

from gumshoe.env.environments import INSIDE, find_environment
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import TaskError
from gumshoe.records import Task

__all__ = ["activate", "use_environment"]

TIMEOUT_S = 120.0
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
MARK = "gumshoe-environment"
# What the code prints comes before the mark.
SHOW = f"printf '%s\\0' {MARK} \"$(command -v python || command -v python3)\" && exec env -0"
OF_THE_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
# The oldest Python that our injected modules run on.
FIT = "import sys; sys.exit(sys.version_info < (3, 6))"


def use_environment(sandbox: WardenSandbox, task: Task) -> None:
    """Makes the task's environment, if it has one, the Python of every program. Raises TaskError if it is not here."""
    name = task.workspace.environment
    if name is None:
        return
    path = sandbox.environment.get("PATH", DEFAULT_PATH)
    variables = {"PATH": f"{INSIDE}/bin:{path}", "VIRTUAL_ENV": INSIDE, **find_environment(name).variables}
    sandbox.activate(variables, f"{INSIDE}/bin/python")


def activate(sandbox: WardenSandbox, task: Task) -> None:
    """Runs the task's activation code, if it has any, and keeps the variables that it sets.

    Our injected modules then run on the Python that is first in its `PATH`, unless that is older than 3.6.

    Raises:
        TaskError: the code failed, or the sandbox has no bash.
    """
    code = task.workspace.activate
    if not code:
        return
    result = sandbox.run(["bash", "-c", f"{code}\n{SHOW}"], timeout=TIMEOUT_S)
    printed, found, rest = result.output.partition(f"{MARK}\0")
    if result.exit_code != 0 or not found:
        why = printed.strip().splitlines()[-1:] or [f"exit code {result.exit_code}"]
        raise TaskError(f"task {task.id}: its environment cannot be activated: {why[0]}")
    python, *lines = rest.split("\0")
    pairs = [line.partition("=") for line in lines if "=" in line]
    known = sandbox.environment
    sandbox.activate(
        {name: value for name, _, value in pairs if name not in OF_THE_SHELL and known.get(name) != value},
        sandbox.python,
    )
    if python and sandbox.run([python, "-c", FIT], timeout=TIMEOUT_S).exit_code == 0:
        sandbox.activate({}, python)
