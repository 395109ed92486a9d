"""Tries variants of single files against the failing tests of a suite, one forked process each. Runs in a sandbox.

Reads one JSON request from standard input:

    {"arguments": [pytest's], "wall_s": seconds, "cases": {id: [path, text]}, "orders": [[id, ...], ...]}

and prints one JSON object: {"failing": [test ids], "passed": {id: true or false}}. Each order is followed up to its
first case that makes all tests pass; what was tried for one order is known to the others.

What makes it fast: pytest is loaded once, a variant runs the failing tests alone, and the first failure ends it. Only
a variant that passes them costs a run of the whole suite.

Standard library and pytest only, Python 3.6 and later.
"""

import json
import os
import select
import signal
import sys
import time

import pytest

FAILED = ("failed", "error")


class TrialOutcomes:
    """Notes which tests pass and fail."""

    def __init__(self):
        self.failed = []
        self.passed = []

    def pytest_runtest_logreport(self, report):
        """Notes the outcome of a test, or of a phase of it that failed."""
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call":
            self.passed.append(report.nodeid)

    def pytest_collectreport(self, report):
        """A file that cannot be collected counts as a failed test."""
        if report.failed:
            self.failed.append(report.nodeid)


def run(arguments, wall_s):
    """What one run of the tests in a fork gave; None where it died or took too long."""
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.close(receive)
            outcomes = TrialOutcomes()
            code = pytest.main(arguments, plugins=[outcomes])
            facts = {"code": int(code), "failed": outcomes.failed, "passed": outcomes.passed}
            os.write(send, json.dumps(facts).encode()[:60000])
        finally:
            os._exit(0)
    os.close(send)
    try:
        return json.loads(receive_all(receive, time.time() + wall_s) or b"null")
    except ValueError:
        return None
    finally:
        os.close(receive)
        for kill in (os.killpg, os.kill):
            try:
                kill(pid, signal.SIGKILL)
            except OSError:
                pass
        os.waitpid(pid, 0)


def receive_all(source, deadline):
    """All that is sent up to the deadline; nothing where the sender is not done by then."""
    data = b""
    while True:
        left = deadline - time.time()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            return b""
        piece = os.read(source, 65536)
        if not piece:
            return data
        data += piece


def write(path, text):
    """Writes a text as it is, undecodable bytes restored."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def read(path):
    """The text of a file, undecodable bytes escaped, newlines as they are."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def passes(case, arguments, failing, wall_s):
    """Whether a variant makes the failing tests pass, and breaks none."""
    path, text = case
    before = read(path)
    write(path, text)
    try:
        for tests in (failing, []):
            seen = run(arguments + ["-x"] + tests, wall_s)
            if seen is None or seen["code"] != 0 or seen["failed"]:
                return False
        return True
    finally:
        write(path, before)


def main():
    """Reads the request from standard input, tries the variants, and writes which of them pass."""
    request = json.loads(sys.stdin.read())
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    said = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    arguments = request["arguments"] + ["-p", "no:cacheprovider", "--tb=no", "--rootdir", os.getcwd()]
    began = time.time()
    seen = run(arguments, request["wall_s"])
    wall_s = min(request["wall_s"], max(2.0, 10 * (time.time() - began)))
    failing = [] if seen is None else [test for test in seen["failed"] if "::" in test]
    passed = {}
    for order in request["orders"]:
        for name in order:
            if name not in passed:
                passed[name] = passes(request["cases"][name], arguments, failing, wall_s)
            if passed[name]:
                break
    os.write(said, json.dumps({"failing": failing, "passed": passed}).encode() + b"\n")


if __name__ == "__main__":
    main()
