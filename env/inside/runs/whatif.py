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
time; those that wait instead, `forks.WALL_FACTOR` times as long as that.

If the request names the `failing` tests, a run covers these alone, in a fork that has collected them
(`pytest_hooks.Collected`), and all tests if one of them passes with the change (with `repairs_only`: if all of them
pass); `whole` says which, and `usual_s` how long all tests took unchanged. If they do not fail when run alone, or are
not pytest's, every run covers all tests.
"""

import contextlib
import importlib
import json
import os
import sys
import time
import warnings

from ..debugger import hooks
from ..programs.program import NullObserver, is_pytest, read_request, run_program
from . import unittest_runs
from .change import Change, ChangeError, count_hits, install, source_of, transform
from .forks import run_all, start_fork
from .patches import Functions
from .probes import ProbeObserver

PATIENCE = 5
LEAST_S, LEAST_IN_FORKS_S = 3.0, 1.5


class ForkedRun:
    """One fork of the program, and what is to be answered about it."""

    def __init__(self, number, program, folder, change, probes=(), only=None):
        self.number = number
        self.answer = _answer(whole=only is None)
        self.hits = _file(folder, number, "hits")
        record = _file(folder, number, "jsonl")
        for left in (record, self.hits):
            with contextlib.suppress(OSError):
                os.remove(left)
        self.fork = start_fork()
        if self.fork is None:
            if change is not None:
                install(change, self.hits)
            watcher = ProbeObserver(probes, os.path.join(folder, "probes.jsonl")) if probes else None
            os._exit(_child(program, record, watcher, only))

    def end(self):
        """Notes how it has ended, or ends it; with it ends everything that it has started."""
        _note(self.answer, self.fork, self.hits)


def _answer(whole):
    return {"exit_code": None, "duration_s": 0.0, "hits": 0, "whole": whole}


def _note(answer, fork, hits):
    """Notes how a fork has ended, or ends it: then its exit code stays None. With it ends all that it has started."""
    answer["exit_code"] = fork.exit_code
    fork.kill()
    answer["duration_s"] = round(time.time() - fork.began, 3)
    with contextlib.suppress(OSError):
        answer["hits"] = os.path.getsize(hits)


def _file(folder, number, kind):
    """Where the outcomes of a run go (`jsonl`), or a byte for each time that its change took effect (`hits`)."""
    return os.path.join(folder, "{}.{}".format(number, kind))


def _child(program, record, watcher, only):
    os.environ["GUMSHOE_OUTCOMES"] = record
    if only is not None:
        os.environ["GUMSHOE_ONLY"] = only
        os.environ["PYTEST_ADDOPTS"] += " -p {}.pytest_hooks".format(__package__)
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
        code = run_program(program, watcher or NullObserver)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return code


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

    Existing functions are given their changed code. What ran when modules were imported is not run again, so a change
    that needs this has no answer.
    """
    from . import pytest_hooks  # which needs pytest

    only = os.path.join(folder, "only.json")
    with open(only, "w") as file:
        json.dump(sorted(failing), file)
    answers = os.path.join(folder, "forks.json")

    def work(session):
        found = _run_collected(session, pytest_hooks.InChild, changes, failing, folder, end)
        with open(answers, "w") as file:
            json.dump(found, file)

    pytest_hooks.plugin = pytest_hooks.Collected(work)
    run_all([lambda: ForkedRun("forks", program, folder, None, only=only)], lambda run: time.time() >= end)
    try:
        with open(answers) as file:
            return {int(number): answer for number, answer in json.load(file).items()}
    except (OSError, ValueError):
        return {}


def _run_collected(session, in_child, changes, failing, folder, end):
    """Runs the tests that pytest has collected, unchanged and with each change that can be made in place."""
    answers, patience = {}, None
    functions = Functions(os.getcwd())
    for number, change in [(0, None), *sorted(changes.items())]:
        patch = None if change is None else functions.replacement(change.path, change.former, change.code)
        if change is not None and patch is None:
            continue
        fork = start_fork()
        if fork is None:
            count_hits(_file(folder, number, "hits"))
            if patch is not None:
                patch.apply()
            writer = session.config.pluginmanager.get_plugin("gumshoe_outcomes_writer")
            writer.path = _file(folder, number, "jsonl")
            raise in_child
        fork.wait(end if patience is None else min(end, fork.began + patience))
        answers[number] = _answer(whole=False)
        _note(answers[number], fork, _file(folder, number, "hits"))
        if number == 0:
            if failing_tests(_file(folder, 0, "jsonl")) != failing:
                return {}
            patience = max(LEAST_IN_FORKS_S, PATIENCE * answers[0]["duration_s"])
    return answers


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
    left = {number: failing_tests(_file(folder, number, "jsonl")) for number in ended}
    helped = [number for number in ended if (not left[number] if request["repairs_only"] else left[number] < failing)]
    usual = known[0]["duration_s"] if known[0]["whole"] else request["usual_s"]
    patience = max(LEAST_S, PATIENCE * usual)
    again = [number for number in changes if number not in known or number in helped]
    starts = [lambda number=number: ForkedRun(number, program, folder, changes[number]) for number in again]
    for run in run_all(starts, lambda run: time.time() >= end or run.fork.has_used(patience)):
        answers[run.number] = run.answer
    with open(os.path.join(folder, "answer.json"), "w") as file:
        json.dump(answers, file)
    return 0
