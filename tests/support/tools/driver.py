"""Runs the debugger that goes into sandboxes on its own, over a plain socket pair."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, Self

from support.tools.inside import program

PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


class Driver:
    """A debugged program in a folder. What it prints goes to a file, so that it can never block."""

    def __init__(self, python: str, folder: Path, *argv: str, env: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self.printed_file = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **env}
        environment["GUMSHOE_CONTROL"] = str(theirs.fileno())
        environment.pop("PYTEST_CURRENT_TEST", None)
        self.process = subprocess.Popen(
            [python, *program("debugger.main"), "--", *argv],
            cwd=folder,
            env=environment,
            pass_fds=[theirs.fileno()],
            stdout=self.printed_file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        theirs.close()
        self.socket = ours
        self.lines = ours.makefile("r", encoding="utf-8")
        self.interim: dict[str, Any] | None = None

    def send(self, **fields: Any) -> None:
        """Sends a request."""
        self.socket.sendall(json.dumps(fields).encode() + b"\n")

    def receive(self, timeout: float = 30) -> dict[str, Any]:
        """The next answer. Breakpoints told before it are kept in `interim`."""
        self.socket.settimeout(timeout)
        while True:
            line = self.lines.readline()
            if not line:
                raise EOFError(f"the debugger has gone: {self.printed}")
            message: dict[str, Any] = json.loads(line)
            if "interim" not in message:
                return message
            self.interim = message

    def request(self, **fields: Any) -> dict[str, Any]:
        """Sends a request and waits for its answer."""
        self.send(**fields)
        return self.receive()

    def do(self, *lines: str) -> dict[str, Any]:
        """Runs pdb command lines."""
        return self.request(lines=list(lines))

    def outputs(self, *lines: str) -> list[str]:
        """What each command answers."""
        return [result["output"] for result in self.do(*lines)["results"]]

    def check(self, *conversation: tuple[str, str]) -> None:
        """Runs commands; each answers as `said` puts it, where `...` stands for any text."""
        results = self.do(*(command for command, _ in conversation))["results"]
        for result, (command, wanted) in zip(results, conversation, strict=True):
            pattern = re.escape(wanted).replace(re.escape("..."), ".*")
            assert re.fullmatch(pattern, said(result), re.DOTALL), (command, said(result))

    @property
    def printed(self) -> str:
        """What the program has printed."""
        self.printed_file.seek(0)
        return self.printed_file.read().decode("utf-8", "replace")

    def interrupt(self) -> None:
        """Sends SIGINT as a terminal does: to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Lets the debugger end by itself, then kills what is left."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(1)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.lines.close()
        self.socket.close()
        self.printed_file.close()


Start = Callable[..., Driver]


def script(project: Path, text: str, name: str = "script.py") -> str:
    """Writes a program into the project."""
    (project / name).write_text(dedent(text))
    return name


def place(reply: dict[str, Any]) -> tuple[str, str, int, str]:
    """Reason, path, line and function of the stop in an answer."""
    stop = reply["stop"]
    return stop["reason"], stop["path"], stop["line"], stop["function"]


def said(result: dict[str, Any]) -> str:
    """What a command has printed, and where the program has stopped after it."""
    lines, stop = [result["output"]], result.get("stop")
    if stop and stop["reason"] != "frame":
        why = stop.get("note") or stop.get("exception")
        lines.append("{reason} {path}:{line} {function}".format(**stop) + (f": {why}" if why else ""))
    return "\n".join(filter(None, lines))


def wait_for(driver: Driver, text: str) -> None:
    """Waits until the program has printed `text`."""
    for _ in range(1000):
        if text in driver.printed:
            return
        time.sleep(0.01)
    raise AssertionError(driver.printed)
