"""Shell scripts of published benchmarks that run the failing tests, as one command."""

from __future__ import annotations

import shlex

__all__ = ["test_command"]

PYTEST = ("pytest", "py.test")
RUNNERS = ("poetry", "run")


def test_command(script: str) -> tuple[str, ...]:
    """The command that a script of test commands stands for: its lines as one run of pytest or unittest, else a shell.

    unittest is made to list its tests, and their outcomes are read from that list. An empty script is an empty command.
    """
    commands = [_plain(words) for line in script.splitlines() if (words := _words(line))]
    kinds = {command[:3] for command in commands}
    if kinds <= {("python", "-m", "pytest")} or kinds <= {("python", "-m", "unittest")}:
        arguments = (word for command in commands for word in command[3:])
        kept = dict.fromkeys(word for word in arguments if word not in ("-q", "--quiet"))
        flags = ("-q",) if kinds == {("python", "-m", "pytest")} else ("-v",)
        return (*kinds.pop(), *flags, *kept) if kinds else ()
    return ("sh", "-ec", script.strip())


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _plain(words: list[str]) -> tuple[str, ...]:
    """The command with the interpreter and the runner under their usual names."""
    while words[0] in RUNNERS and len(words) > 1:
        words = words[1:]
    if words[0] in PYTEST:
        return ("python", "-m", "pytest", *words[1:])
    if words[0] in ("python", "python3") and words[1:2] == ["-m"] and words[2:3] and words[2] in PYTEST:
        return ("python", "-m", "pytest", *words[3:])
    return ("python", *words[1:]) if words[0] == "python3" else tuple(words)
