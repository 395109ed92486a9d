"""Tries variants of single files against the failing tests of a suite, one forked process each. Runs in a sandbox.

Reads one JSON request from standard input:

    {"arguments": [pytest's], "wall_s": seconds, "cases": {id: [path, text]}, "orders": [[id, ...], ...]}

and prints one JSON object: {"passed": {id: true or false}}. Each order is followed up to its first case that makes all
tests pass; what was tried for one order is known to the others.

What makes it fast: pytest is loaded once, a variant runs the failing tests alone, and the first failure ends it. Only
a variant that passes them costs a run of the whole suite.

Standard library and pytest only, Python 3.6 and later.
"""

import json
import os
import sys
import time

import pytest

from ..runs.forks import answer_of
from .recorder import OutcomeRecorder, failing


def run(arguments, wall_s):
    """What one run of the tests in a fork gave. Nobody reads its messages, so their paths may stay as they are."""

    def child(writer):
        try:
            pytest.main(arguments, plugins=[OutcomeRecorder(os.getcwd(), os.getcwd(), writer)])
        finally:
            os._exit(1)

    return answer_of(child, wall_s)


def write(path, text):
    """Writes a text as it is, undecodable bytes restored."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def read(path):
    """The text of a file, undecodable bytes escaped, newlines as they are."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def passes(case, arguments, failing, wall_s):
    """Whether a variant makes the failing tests pass, and breaks no others."""
    path, text = case
    before = read(path)
    write(path, text)
    try:
        return all(run([*arguments, "-x", *tests], wall_s).get("exit_code") == 0 for tests in (failing, []))
    finally:
        write(path, before)


def main(_):
    """Reads the request from standard input, tries the variants, and writes which of them pass."""
    request = json.loads(sys.stdin.read())
    sys.dont_write_bytecode = True
    sys.path.insert(0, "")  # as `python -m pytest` does
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    said = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    arguments = [*request["arguments"], "-p", "no:cacheprovider", "--tb=no", "--rootdir", os.getcwd()]
    began = time.time()
    outcomes = run(arguments, request["wall_s"]).get("outcomes", {})
    wall_s = min(request["wall_s"], max(2.0, 10 * (time.time() - began)))
    broken = failing(outcomes)
    passed = {}
    for order in request["orders"]:
        for name in order:
            if name not in passed:
                passed[name] = passes(request["cases"][name], arguments, broken, wall_s)
            if passed[name]:
                break
    os.write(said, json.dumps({"passed": passed}).encode() + b"\n")
