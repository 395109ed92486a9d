"""Tries variants of single files against the failing tests of a suite, one forked process each. Runs in a sandbox.

Reads one JSON request from standard input:

    {"arguments": [pytest's], "wall_s": seconds, "cases": {id: [path, text]}, "orders": [[id, ...], ...]}

and prints one JSON object: {"passed": {id: true or false}}. Each order is followed up to its first case that makes all
tests pass; what was tried for one order is known to the others. Cases that no order came to are missing.

What makes it fast: pytest is loaded once, a variant runs the failing tests alone, and the first failure ends it. Only
a variant that passes them costs a run of the whole suite. If nothing fails to begin with, each variant runs the suite,
and one that passes runs it twice.
"""

import json
import os
import sys
import time

from .project import run_pytest, silence
from .recorder import OutcomeRecorder, failing


class Trials:
    """The project in the current folder, and what is known of it.

    Making one runs the whole suite, to learn which tests fail and how long it takes: ten times that, and at least two
    seconds, is what a later run may take. If no test fails, or the run ends without outcomes, the whole suite stands in
    for the failing tests.
    """

    def __init__(self, request):
        self._arguments = [*request["arguments"], "-p", "no:cacheprovider", "--tb=no", "--rootdir", os.getcwd()]
        self._cases = request["cases"]
        self._passed = {}
        self._wall_s = request["wall_s"]
        began = time.time()
        self._failing = failing(self._run([]).get("outcomes", {}))
        self._wall_s = min(self._wall_s, max(2.0, 10 * (time.time() - began)))

    def follow(self, orders):
        """Tries the cases of each order. Returns which pass, by id."""
        for order in orders:
            for name in order:
                if name not in self._passed:
                    self._passed[name] = self._passes(*self._cases[name])
                if self._passed[name]:
                    break
        return self._passed

    def _passes(self, path, text):
        """Whether a variant makes the failing tests pass, and breaks no others."""
        before = _read(path)
        _write(path, text)
        try:
            return all(self._run(["-x", *tests]).get("exit_code") == 0 for tests in (self._failing, []))
        finally:
            _write(path, before)

    def _run(self, arguments):
        """What a run of the tests gives. Nobody reads its messages, so their paths may stay as they are."""

        def plugins(writer):
            return [OutcomeRecorder(os.getcwd(), os.getcwd(), writer)]

        return run_pytest([*self._arguments, *arguments], plugins, self._wall_s)


def _write(path, text):
    """Writes a text as it is, undecodable bytes restored."""
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def _read(path):
    """The text of a file, undecodable bytes escaped, newlines as they are."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def main(_):
    """Reads the request from standard input, tries the variants, and writes which of them pass."""
    request = json.loads(sys.stdin.read())
    sys.dont_write_bytecode = True
    sys.path.insert(0, "")  # as `python -m pytest` does
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    answer = os.dup(1)
    silence(0, 1, 2)
    passed = Trials(request).follow(request["orders"])
    os.write(answer, json.dumps({"passed": passed}).encode() + b"\n")
