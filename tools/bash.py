"""`bash`: commands in a shell that stays open."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from pydantic import JsonValue

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Session, Workspace
from gumshoe.records import Observation, SessionReply
from gumshoe.text import cut, plain_text
from gumshoe.tools.base import BaseTool

_OUTPUT_LIMIT = 4000
_LONG = 2000
_STATE_FILES = ("exports", "cwd")
_SPECIAL = re.compile(rb"[^\w ./:;,=+()<>|&*?'$#@!^~\[\]{}-]", re.ASCII)
_ENVIRONMENT = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "PS1": ""}

_SHELL = r"""
__gumshoe_folder=$1
eval "exec 250<&$GUMSHOE_CONTROL $GUMSHOE_CONTROL<&-"
unset GUMSHOE_CONTROL
__gumshoe_save() {
  export -p > "$__gumshoe_folder/exports"
  printf '%s' "$PWD" > "$__gumshoe_folder/cwd"
} 2> /dev/null
if [ -r "$__gumshoe_folder/exports" ]; then
  . "$__gumshoe_folder/exports"
  IFS= read -r -d '' __gumshoe_cwd < "$__gumshoe_folder/cwd"
  cd -- "$__gumshoe_cwd"
fi 2> /dev/null
trap __gumshoe_save EXIT
while IFS= read -r -u 250 __gumshoe_request; do
  __gumshoe_nonce=${__gumshoe_request##*\"nonce\": \"}
  __gumshoe_nonce=${__gumshoe_nonce%%\"*}
  case $__gumshoe_request in
    *'"command": "'*)
      __gumshoe_command=${__gumshoe_request#*\"command\": \"}
      __gumshoe_command=${__gumshoe_command%%\"*}
      printf -v __gumshoe_command %b "${__gumshoe_command//%/\\x}" ;;
    *) IFS= read -r -d '' __gumshoe_command < "$__gumshoe_folder/command" ;;
  esac
  eval "$__gumshoe_command" < /dev/null 250<&-
  __gumshoe_code=$?
  __gumshoe_save
  printf '{"nonce": "%s", "exit_code": %d}\n' "$__gumshoe_nonce" "$__gumshoe_code" >&250
done
"""
"""The shell's loop. A request on the control socket holds the command, every byte that means something to JSON or to
printf as `%` and its code. A long command comes in a file, since a shell reads a socket byte by byte. Working folder
and exported variables are kept in files for the shell that comes after this one."""


class _State(NamedTuple):
    """A shell as it was: after how many calls, and the files that it keeps for the one after it."""

    calls: int
    files: dict[str, bytes | None]
    is_whole: bool


class Bash(BaseTool):
    """Runs commands in one shell, whose working folder, variables and background jobs last from call to call.

    A command that takes too long is killed together with the shell and its background jobs; the next call gets a new
    shell with the working folder and the exported variables as they were before. So does a call after `exit`.
    """

    name = "bash"
    changes_files = True

    def __init__(self) -> None:
        super().__init__()
        self._session: Session | None = None
        self._calls = 0

    def run(self, workspace: Workspace, command: str) -> Observation:
        """Run a shell command. Working folder and exported variables last.

        Args:
            command: bash command line or script
        """
        if "\0" in command:
            raise ToolFailure("bad_arguments", "the command contains a NUL byte")
        self._calls += 1
        sandbox = workspace.sandbox
        folder = _folder(workspace)
        if self._session is None:
            sandbox.write_file(f"{folder}/command", b"", inside=False)
            argv = ["bash", "--noprofile", "--norc", "-c", _SHELL, "bash", folder]
            self._session = sandbox.open_session(argv, env=_ENVIRONMENT)
        request: dict[str, JsonValue] = {"command": _in_ascii(command)}
        if len(_in_ascii(command)) > _LONG:
            sandbox.write_file(f"{folder}/command", command.encode(), inside=False)
            request = {}
        timeout = workspace.task.limits.command_timeout_s
        reply = self._session.request(request, timeout)
        if reply.message is None:
            self.close()
        return self._observe(reply, timeout)

    def _observe(self, reply: SessionReply, timeout: float) -> Observation:
        exit_code = reply.exit_code if reply.message is None else reply.message.get("exit_code")
        if type(exit_code) is not int:
            exit_code = None
        output, truncated = cut(plain_text(reply.output).strip("\n"), _OUTPUT_LIMIT)
        lines = [output] if output else []
        if reply.timed_out:
            lines.append(f"timed out after {timeout:g} s: killed")
        elif exit_code != 0:
            lines.append(f"exit code {exit_code}")
        data = {"exit_code": exit_code, "timed_out": reply.timed_out}
        return self.observe("\n".join(lines) or "no output", data, truncated=truncated or reply.truncated)

    def snapshot(self, workspace: Workspace) -> object:
        """The working folder and the exported variables, and at which call."""
        files = {name: self._read_state(workspace, name) for name in _STATE_FILES}
        return _State(self._calls, files, is_whole=self._session is None)

    def restore(self, state: _State, workspace: Workspace) -> None:
        """Has the next call begin in a new shell with that folder and these variables; the same one where it has run
        nothing since.
        """
        if state.calls == self._calls:
            return
        self.close()
        self._calls += 1
        for name, data in state.files.items():
            path = f"{_folder(workspace)}/{name}"
            if data is not None:
                workspace.sandbox.write_file(path, data, inside=False)
            elif self._read_state(workspace, name) is not None:
                workspace.sandbox.remove_file(path, inside=False)

    def is_whole(self, state: _State) -> bool:
        """Whether no shell was open: its background jobs, and variables that are not exported, are lost."""
        return state.is_whole

    def _read_state(self, workspace: Workspace, name: str) -> bytes | None:
        """A file that the shell keeps for the one after it; None where it has run nothing yet."""
        try:
            return workspace.sandbox.read_file(f"{_folder(workspace)}/{name}", inside=False) if self._calls else None
        except OSError:
            return None

    def on_reset(self, workspace: Workspace) -> None:
        """Begins with a new shell."""
        self.close()
        self._calls = 0
        for name in _STATE_FILES:
            try:
                workspace.sandbox.remove_file(f"{_folder(workspace)}/{name}", inside=False)
            except FileNotFoundError:
                continue

    def close(self) -> None:
        """Kills the shell and its background jobs."""
        if self._session is not None:
            self._session.close()
            self._session = None


def _in_ascii(command: str) -> str:
    """The command with `%` and two digits for every byte that is not an ordinary character."""
    return _SPECIAL.sub(lambda found: b"%%%02x" % found[0][0], command.encode()).decode("ascii")


def _folder(workspace: Workspace) -> str:
    """Where the shell's state is kept: beside our modules, out of the workspace."""
    return posixpath.join(posixpath.dirname(workspace.sandbox.support), "shell")
