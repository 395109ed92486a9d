"""Runs a program several times, each time with one line of the project changed in memory; also watches it unchanged.

    python __main__.py runs.whatif -- -m pytest -q        with the request in the file that GUMSHOE_WHATIF names

Standard library only, Python 3.6 to 3.14. The request is `{"variants": [{"path", "line", "do", "time", "when"}],
"probes": [...], "failing", "usual_s", "repairs_only", "folder", "deadline_s"}`. The test runner is imported once; then
the program is forked for the unchanged run, which probes watch (see `probes`), and, when that is over, for each
variant. In a fork the module at `path` is compiled from a changed syntax tree; no file changes.

Into `folder` go `N.jsonl` with the outcomes of run N (0 is the unchanged one), `probes.jsonl` with what the probes saw,
and `answer.json`: for each run its
`exit_code` (None: stopped for taking too long), `duration_s`, how often the change took effect (`hits`), or `error`:
why the change cannot be made. Runs of variants take at most `PATIENCE` times as long as the unchanged one, in processor
time; those that wait instead, `IDLE` times as long as that.

If the request names the `failing` tests, a run covers these alone, in a fork that has collected them
(`forks`), and all tests if one of them passes with the change (with `repairs_only`: if all of them pass);
`whole` says which, and `usual_s` how long all tests took unchanged. If they do not fail when run alone, or are not
pytest's, every run covers all tests.
"""

import contextlib
import importlib
import json
import os
import sys
import time
import warnings

from ..debugger import hooks
from ..programs import children
from ..programs.program import Nobody, is_pytest, read_request, run_program
from . import unittest_runs
from .change import Change, ChangeError, install, source_of, transform
from .probes import ProbeObserver

PATIENCE = 5
LEAST_S = 3.0
IDLE = 5
JOBS = 4


class ForkedRun:
    """One fork of the program."""

    def __init__(self, number, program, folder, change, probes=(), only=None):
        self.number = number
        self.answer = {"exit_code": None, "duration_s": 0.0, "hits": 0, "whole": only is None}
        record = _record(folder, number)
        self.hits = os.path.join(folder, "{}.hits".format(number))
        for left in (record, self.hits):
            with contextlib.suppress(OSError):
                os.remove(left)
        self.began = time.time()
        self.pid = os.fork()
        if self.pid == 0:
            os.setpgid(0, 0)
            if change is not None:
                install(change, self.hits)
            watcher = ProbeObserver(probes, os.path.join(folder, "probes.jsonl")) if probes else None
            os._exit(_child(program, record, watcher, only))

    def is_over(self):
        """Whether it has ended; if so, notes how."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return False
        self.answer["exit_code"] = children.exit_code(status)
        self._finish()
        return True

    def has_used(self, seconds):
        """Whether it has used that much CPU time, or `IDLE` times as much wall time."""
        took = time.time() - self.began
        return took >= IDLE * seconds or (took >= seconds and _processor_s(self.pid) >= seconds)

    def stop(self):
        """Ends it, with everything that it has started."""
        children.kill(self.pid)
        os.waitpid(self.pid, 0)
        self._finish()

    def _finish(self):
        children.kill(self.pid)
        self.answer["duration_s"] = round(time.time() - self.began, 3)
        if os.path.exists(self.hits):
            self.answer["hits"] = os.path.getsize(self.hits)


def _record(folder, number):
    """Where the outcomes of a run go."""
    return os.path.join(folder, "{}.jsonl".format(number))


def _child(program, record, watcher, only):
    os.environ["GUMSHOE_OUTCOMES"] = record
    if only is not None:
        os.environ["GUMSHOE_ONLY"] = only
        os.environ["PYTEST_ADDOPTS"] += " -p {}.forks".format(__package__)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    if watcher is not None:
        hooks.install(watcher)
    if is_pytest(program):
        if watcher is not None:
            hooks.announce()
    else:
        unittest_runs.install(record)
        if watcher is not None:
            watcher.engage()
    code = 1
    try:
        code = run_program(program, watcher or Nobody)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return code


def _processor_s(pid):
    """Seconds of CPU time that a process and its ended children have used; infinite if that is not known."""
    try:
        with open("/proc/{}/stat".format(pid), "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:
        return float("inf")
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def run_all(runs, is_late):
    """Waits for runs, at most `JOBS` at a time; those that are late are stopped.

    Args:
        runs: functions that start a run.
        is_late: whether a run is to be stopped.
    """
    waiting, going, done = list(runs), [], []
    while waiting or going:
        while waiting and len(going) < min(JOBS, os.cpu_count() or 1):
            going.append(waiting.pop(0)())
        time.sleep(0.002)
        for run in list(going):
            over = run.is_over()
            if not over and is_late(run):
                run.stop()
                over = True
            if over:
                going.remove(run)
                done.append(run)
    return done


def failing_tests(record):
    """The ids of the tests that failed, from the record file; none if there is no such file."""
    try:
        with open(record, "rb") as file:
            outcomes = [json.loads(line.decode("utf-8")) for line in file]
    except (OSError, ValueError):
        return set()
    return {each["id"] for each in outcomes if each["outcome"] in ("failed", "error")}


def _in_forks(changes, failing, program, folder, end):
    """The answers of variants that were run on the failing tests alone, by number, and 0 for the unchanged run; none
    if these tests do not fail in the same way without the others.
    """
    from . import forks  # which needs pytest

    only = os.path.join(folder, "only.json")
    with open(only, "w") as file:
        json.dump(sorted(failing), file)
    forks.plugin = forks.Forks(changes, lambda record: failing_tests(record) == failing, folder, end)
    run_all([lambda: ForkedRun("forks", program, folder, None, only=only)], lambda run: time.time() >= end)
    try:
        with open(os.path.join(folder, "forks.json")) as file:
            return {int(number): answer for number, answer in json.load(file).items()}
    except (OSError, ValueError):
        return {}


def _changes(variants, answers):
    """The changes that variants make to their modules, by number; if one is impossible, its answer says why."""
    sources, changes = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, variant in enumerate(variants, start=1):
            path = os.path.abspath(variant["path"])
            try:
                if path not in sources:
                    sources[path] = source_of(variant["path"])
                changes[number] = Change(path, transform(variant, sources[path]), sources[path].code)
            except ChangeError as error:
                answers[number] = {"error": str(error)}
    return changes


def main(arguments):
    """Carries out the request. Returns the exit code, 2 for a program that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_WHATIF", "runs.whatif")
    if request is None:
        return 2
    if is_pytest(program):
        importlib.import_module("pytest")  # so that each fork has it
    folder, end = request["folder"], time.time() + request["deadline_s"]
    answers = [{} for _ in range(len(request["variants"]) + 1)]
    changes = _changes(request["variants"], answers)
    failing = set(request.get("failing") or ())
    known = _in_forks(changes, failing, program, folder, end) if failing and is_pytest(program) else {}
    if not known:
        (base,) = run_all(
            [lambda: ForkedRun(0, program, folder, None, request.get("probes") or ())], lambda run: time.time() >= end
        )
        known = {0: base.answer}
    for number, answer in known.items():
        answers[number] = answer
    ended = [number for number in known if number and known[number]["exit_code"] is not None]
    left = {number: failing_tests(_record(folder, number)) for number in ended}
    helped = [number for number in ended if (not left[number] if request["repairs_only"] else left[number] < failing)]
    usual = known[0]["duration_s"] if known[0]["whole"] else request["usual_s"]
    patience = max(LEAST_S, PATIENCE * usual)
    again = [number for number in changes if number not in known or number in helped]
    starts = [lambda number=number: ForkedRun(number, program, folder, changes[number]) for number in again]
    for run in run_all(starts, lambda run: time.time() >= end or run.has_used(patience)):
        answers[run.number] = run.answer
    with open(os.path.join(folder, "answer.json"), "w") as file:
        json.dump(answers, file)
    return 0
