"""Runs many variants of one project against its tests, one forked process each. Runs inside a sandbox.

Reads one JSON request from standard input:

    {"root": folder of the project, "keep": folder for what outlives this process, "results": file to write,
     "timeout_s": seconds for a run of the tests, "trace_factor": how many times that for one that is traced,
     "arguments": [pytest's], "memory_mb": megabytes,
     "candidates": [{"id": text, "files": {path: text}, "lines": {path: [line, ...]}}, ...]}

and writes one JSON object a line to `results`. The first line is about the project as it is, its baseline: the first
request runs the suite, records which test executes which line, and keeps a clean copy. Where the suite does not pass,
that is all; there is no line at all where pytest does not start. Then there is a line for each candidate, whose
`status` is one of `VerdictStatus` in `env/bugs/judging.py`, but never `all_fail`. If it is `killed`, `outcomes` has
every test's outcome, and `failures` the facts of each failure.

A candidate is judged in place where that can be done, else by importing the project again. The package's docstring has
a picture of the processes.

In place, the suite is collected once, with the clean project loaded; a candidate is a fork in which the changed
functions get their new code, and which runs the tests that execute the change. Where one fails, a second fork repeats
those that fail. It also runs all tests that start processes and those that were too slow to follow, since not all that
these execute is known. The remaining tests have the outcomes of the clean project, although what a failing test leaves
behind may break one of them: that takes a run of the whole suite to see. What fails is run once without the change.

A change that reaches code which ran at the import needs the project imported again, in a process of its own. One that
fails a test which executes its change costs a run of the whole suite.
"""

import contextlib
import importlib
import json
import os
import sys
import types
from functools import partial

from ..programs.fork_safety import freeze
from ..programs.runner_hooks import PASSED
from ..runs.patches import FunctionsOfFiles, apply
from . import RUNS_IMPORTED, RUNS_IN_PLACE
from .project import ProjectSuite, ProjectUnderTest, silence
from .recorder import failing, verdict_of

# What two runs of a test have to agree on.
FACTS = ("outcomes", "failures")
# Below this share of the suite, the tests that execute a change are run on their own first.
FEW = 0.5
# Processor and wall-clock time of a run: a multiple of what the clean tests take, and a minimum in seconds.
CPU_FACTOR, CPU_S = 5.0, 0.3
WALL_FACTOR, WALL_S = 5.0, 2.0


class CleanRuns(types.SimpleNamespace):
    """What two runs of the clean project's tests have shown, one of them traced.

    Attributes:
        seen: what the traced run has seen (see `OutcomeRecorder`), but for what is below, with two lists of tests:
            `unstable`, which have other outcomes in the second run, and `unseeded`, after which the random numbers are
            others there; or just a `status`, if a run came to nothing. Then there is only `is_fit` besides.
        is_fit: whether variants can be judged: the suite passes, with the same outcomes in both runs.
        covered: which tests execute which line, {path: {line: [test, ...]}}. Each line is a string: these come as JSON.
        modules: the names of what is imported from outside of the project.
        unfollowed: the tests of which not all lines are known.
        cpu_s, wall_s: the limits of a run of the whole suite.
        seconds: how long each test takes without tracing.
    """

    def covering(self, lines):
        """The tests that execute one of `lines`, {path: [line, ...]}; "" stands for importing the project, so for them
        all.
        """
        tests = set()
        for path, numbers in lines.items():
            for number in numbers:
                tests.update(self.covered.get(path, {}).get(str(number), []))
        return sorted(tests)


def find_baseline(suite):
    """The baseline of a project; None if pytest does not start."""
    project = suite.project
    project.save_clean_copy()
    seen = suite.run([], trace=True)
    if "status" in seen:
        return None if seen["status"] == "collection" else CleanRuns(seen=seen, is_fit=False)
    project.save_byte_code()
    project.read_clean_entries()
    project.restore()
    again = suite.run([])
    if "status" in again:
        return CleanRuns(seen=again, is_fit=False)
    covered, modules, unfollowed = (seen.pop(fact) for fact in ("covered", "modules", "unfollowed"))
    seen["unstable"] = differing(seen["outcomes"], again["outcomes"])
    # Each fork gives the shared random numbers a new seed. After a test that sets one, they are the same in both runs.
    seen["unseeded"] = differing(seen.pop("random_after"), again["random_after"])
    return CleanRuns(
        seen=seen,
        is_fit=not seen["unstable"] and verdict_of(seen) == "survived",
        covered=covered,
        modules=modules,
        unfollowed=unfollowed,
        cpu_s=min(project.cpu_s, max(CPU_S, CPU_FACTOR * again["cpu_s"])),
        wall_s=min(project.wall_s, max(WALL_S, WALL_FACTOR * again["wall_s"])),
        seconds=again["seconds"],
    )


def differing(first, second):
    """The tests of which two runs tell different things."""
    return sorted(test for test in set(first) | set(second) if first.get(test) != second.get(test))


def known_baseline(suite):
    """What `find_baseline` returns, which is kept for later processes."""
    path = os.path.join(suite.project.keep, "baseline.json")
    if os.path.exists(path):
        with open(path) as file:
            return CleanRuns(**json.load(file))
    baseline = find_baseline(suite)
    if baseline is not None:
        with open(path, "w") as file:
            json.dump(vars(baseline), file)
    return baseline


def preload(names):
    """Imports what the suite had imported from outside of the project, so that every fork has it."""
    for name in names:
        if name not in sys.modules and not name.startswith("__"):
            # What cannot be loaded ahead is loaded by the suite, or not; a module may raise anything.
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def judge_in_place(candidates, suite, baseline):
    """{id: what becomes of it} of the candidates that can be judged without importing the project again.

    None of them where the process that has collected the tests does not come to its end: all are imported then.
    """

    def work(run):
        judge = InPlace(suite.project, baseline, run)
        answers = {each["id"]: judge.answer(each) for each in candidates}
        return {"answers": {name: answer for name, answer in answers.items() if answer is not None}}

    # Once for collecting the tests.
    wall_s = suite.project.wall_s * (1 + RUNS_IN_PLACE * len(candidates))
    return suite.collected(work, wall_s).get("answers", {}) if candidates else {}


class InPlace:
    """Judges candidates in a process that has collected the clean project.

    Args:
        project: the project.
        baseline: the project's.
        run: runs tests in a fork, see `ProjectSuite.collected`.
    """

    def __init__(self, project, baseline, run):
        self._project = project
        self._baseline = baseline
        self._run = run
        self._functions = FunctionsOfFiles(project.root, project.clean)
        self._passing = set()  # tests that are known to pass in the clean project without others before them
        freeze()

    def answer(self, candidate):
        """What becomes of a candidate, as a line of the answer has it, but for its id.

        None if that cannot be told here, so that the candidate has to be imported:

        - no test executes the change (which costs no import), or the import itself does
        - the change cannot be made in place (see `FunctionsOfFiles.patch`)
        - the first run ended without a result, but in time, or it lacks some of the tests
        - a test that fails with the change also fails without it, when it is run on its own
        """
        tests = self._baseline.covering(candidate["lines"])
        patch = self._functions.patch(candidate["files"]) if tests and "" not in tests else None
        if patch is None:
            return None
        first = self._run_changed(candidate, patch, tests)
        if first.get("status") == "timeout":
            return {"status": "timeout"}
        if "status" in first or set(tests) - set(first["outcomes"]):
            return None
        if verdict_of(first) != "killed":
            return {"status": verdict_of(first)}
        broken = failing(first["outcomes"])
        again = self._run_changed(candidate, patch, sorted({*broken, *self._baseline.unfollowed}))
        if verdict_of(again) != "killed":
            return without_second(again)
        if disagree(first, again, broken):
            return {"status": "flaky"}
        if not self._pass_alone(again["failures"]):
            return None
        outcomes = {**self._baseline.seen["outcomes"], **first["outcomes"], **again["outcomes"]}
        return {"status": "killed", "outcomes": outcomes, "failures": again["failures"]}

    def _run_changed(self, candidate, patch, tests):
        """Runs tests with a candidate's functions. Its files are there, too, since tests may look at them."""
        project = self._project
        project.reset_and_write(candidate["files"])
        seconds = sum(self._baseline.seconds.get(test, 0.0) for test in tests)
        cpu_s = min(project.cpu_s, CPU_S + CPU_FACTOR * seconds)
        wall_s = min(project.wall_s, WALL_S + WALL_FACTOR * seconds)
        return self._run(tests, partial(apply, patch), cpu_s, wall_s)

    def _pass_alone(self, tests):
        """Whether tests pass without the change. If not, they need others before them, or fail for how they are run."""
        unknown = sorted(set(tests) - self._passing)
        if unknown:
            self._project.reset_and_write({})
            seen = self._run(unknown).get("outcomes", {})
            self._passing.update(test for test, outcome in seen.items() if outcome in PASSED)
        return self._passing.issuperset(tests)


def judge_imported(candidate, suite, baseline):
    """What becomes of a candidate that is imported. A killed one has run the whole suite once, and its failing tests
    twice.
    """

    def work(run):
        first = run(tests if are_few else [])
        if verdict_of(first) != "killed":
            return {"runs": [first]}
        project.reset_and_write(candidate["files"])
        return {"runs": [first, run([] if are_few else sorted(first["failures"]))]}

    tests = baseline.covering(candidate["lines"])
    if not tests:
        return {"status": "uncovered"}
    project = suite.project
    are_few = "" not in tests and len(tests) < FEW * len(baseline.seen["outcomes"])
    project.reset_and_write(candidate["files"])
    seen = suite.collected(work, RUNS_IMPORTED * project.wall_s, is_clean=False)
    first, *rest = seen.get("runs", [seen])
    if not rest:
        return {"status": verdict_of(first)}
    second = rest[0]
    if verdict_of(second) != "killed":
        return without_second(second)
    part, whole = (first, second) if are_few else (second, first)
    if disagree(part, whole, part["outcomes"]):
        return {"status": "flaky"}
    return {"status": "killed", "outcomes": whole["outcomes"], "failures": whole["failures"]}


def without_second(again):
    """What becomes of a candidate that failed a test once, but not in its second run."""
    return {"status": "flaky" if verdict_of(again) == "survived" else verdict_of(again)}


def disagree(first, second, tests):
    """Whether two runs tell different things of `tests`, or one that fails used other random numbers in each."""
    drawn = [test for test in tests if test in first["failures"]]
    return any(first[facts].get(test) != second[facts].get(test) for facts in FACTS for test in tests) or any(
        first["random_after"].get(test) != second["random_after"].get(test) for test in drawn
    )


def write_line(results, value):
    """Sends one result as a line of JSON."""
    results.write(json.dumps(value) + "\n")
    results.flush()


def serve(request, project, results):
    """Writes a line for the baseline, and one for each candidate.

    Once the baseline is known, it lowers the project's `cpu_s` and `wall_s` to what that allows a run of the suite.
    """
    suite = ProjectSuite(project)
    baseline = known_baseline(suite)
    if baseline is None:
        return
    write_line(results, baseline.seen)
    if not baseline.is_fit:
        return
    project.cpu_s, project.wall_s = baseline.cpu_s, baseline.wall_s
    preload(baseline.modules)
    # What an earlier process or the runs of the baseline left behind goes.
    project.read_clean_entries()
    project.restore()
    freeze()
    answers = judge_in_place(request["candidates"], suite, baseline)
    for candidate in request["candidates"]:
        answer = answers.get(candidate["id"]) or judge_imported(candidate, suite, baseline)
        write_line(results, dict(answer, id=candidate["id"]))


def main(_):
    """Reads the request from standard input, and answers with a line for each candidate."""
    request = json.loads(sys.stdin.read())
    project = ProjectUnderTest(request)
    project.randomness.watch()
    sys.dont_write_bytecode = False
    os.makedirs(project.keep, exist_ok=True)
    os.chdir(project.root)
    sys.path.insert(0, project.root)
    silence(0, 1)
    with open(request["results"], "w") as results:
        serve(request, project, results)
