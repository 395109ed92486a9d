"""Runs many variants of one project against its tests, one forked process each. Runs inside a sandbox.

Reads one JSON request from standard input:

    {"root": folder of the project, "keep": folder for what outlives this process, "results": file to write,
     "cpu_s": seconds, "wall_s": seconds, "memory_mb": megabytes,
     "candidates": [{"id": text, "files": {path: text}, "lines": {path: [line, ...]}}, ...]}

and writes one JSON object a line to `results`. The first line is about the project as it is, its baseline: the first
request runs the suite, records which test executes which line, and keeps a clean copy. Where the suite does not pass,
that is all. Then there is a line for each candidate, whose `status` is

    uncovered   no test executes a changed line; nothing was run
    survived    the tests that execute a changed line pass
    timeout     it used up its processor or wall-clock time
    crashed     the process died without an answer
    collection  the tests could not be collected, or none were
    flaky       two runs gave different outcomes, or a failing test drew random numbers without a seed
    killed      some test fails: `outcomes` has every test's outcome, `failures` the facts of each failure

What makes it fast: the suite is collected once, with the clean project loaded; a candidate is a fork in which the
changed functions get their new code, and which runs the tests that execute the change. Where one fails, a second fork
repeats those that fail. It also runs all tests that start processes and those that were too slow to follow, since not
all that these execute is known; and all tests where defaults change, which any of them may look at. The remaining
tests have the outcomes of the clean project, although what a failing test leaves behind may break one of them: that
takes a run of the whole suite to see. What fails is run once without the change.

A change that reaches code which ran at the import needs the project imported again. There a candidate is a fork of a
process that has pytest configured and what the project imports from outside loaded; it starts with collecting, and its
runs are forks of that. One that fails a test which executes its change costs a run of the whole suite. Where a conftest
imports the project while pytest is being configured, each of these runs forks before pytest is configured.

Standard library and pytest only, Python 3.6 and later.
"""

import contextlib
import gc
import importlib
import json
import os
import sys

import pytest

from ..runs.patches import Functions
from .project import ProjectUnderTest
from .recorder import failing, inside_modules, verdict_of
from .suites import EarlyForks, LateForks, reset_and_write

# What two runs of a test have to agree on.
FACTS = ("outcomes", "failures")
# Below this share of the suite, the tests that execute a change are run on their own first.
FEW = 0.5
# Processor and wall-clock time of a run: a multiple of what the clean tests take, and a minimum in seconds.
CPU_FACTOR, CPU_S = 5.0, 0.3
WALL_FACTOR, WALL_S = 5.0, 2.0


def baseline(project, forks, early):
    """What is known of the clean project: two runs of its suite, one of them traced."""
    project.save()
    seen = forks.run([], trace=True)
    if "status" in seen:
        return {"seen": seen, "fit": False, "early": early}
    project.save_byte_code()
    project.look()
    project.restore()
    again = forks.run([])
    covered, modules, unfollowed = (seen.pop(fact) for fact in ("covered", "modules", "unfollowed"))
    seen["unstable"] = differing(seen["outcomes"], again.get("outcomes", {}))
    # Each fork gives the shared random numbers a new seed. After a test that sets one, they are the same in both runs.
    seen["unseeded"] = differing(seen.pop("random_after"), again.get("random_after", {}))
    known = {"seen": seen, "fit": not seen["unstable"] and verdict_of(seen) == "survived", "early": early}
    known["covered"] = {"lines": covered, "tests": sorted(seen["outcomes"])}
    known["modules"] = modules
    known["unfollowed"] = unfollowed
    known["cpu_s"] = min(project.cpu_s, max(CPU_S, CPU_FACTOR * again.get("cpu_s", 0.0)))
    known["wall_s"] = min(project.wall_s, max(WALL_S, WALL_FACTOR * again.get("wall_s", 0.0)))
    known["seconds"] = again.get("seconds", {})
    return known


def differing(first, second):
    """The tests of which two runs tell different things."""
    return sorted(test for test in set(first) | set(second) if first.get(test) != second.get(test))


def preload(names):
    """Imports what the suite had imported from outside of the project, so that every fork has it."""
    for name in names:
        if name not in sys.modules and not name.startswith("__"):
            # What cannot be loaded ahead is loaded by the suite, or not; a module may raise anything.
            with contextlib.suppress(Exception):
                importlib.import_module(name)


def covering_tests(covered, lines):
    """The tests that execute one of `lines` ({path: [line]}); "" stands for importing the project, so for them all."""
    tests = set()
    for path, numbers in lines.items():
        for number in numbers:
            tests.update(covered.get(path, {}).get(str(number), []))
    return sorted(tests)


def in_place(candidates, project, forks, known):
    """{id: what becomes of it} of the candidates that can be judged without importing the project again."""

    def work(run):
        functions = Functions(project.root, project.clean)
        freeze()
        passing = set()
        answers = {}
        for candidate in candidates:
            if not covering_tests(known["covered"]["lines"], candidate["lines"]):
                continue
            patch = functions.patch(candidate["files"])
            tests = patch and tests_of(patch, candidate["lines"], known["covered"]["lines"])
            if tests is None:
                continue
            answer = {"status": "uncovered"}
            if tests:
                answer = judge(candidate["files"], patch, tests, project, run, known, passing)
            if answer is not None:
                answers[candidate["id"]] = answer
        return {"answers": answers}

    wall_s = project.wall_s * (1 + 3 * len(candidates))
    return forks.collected(work, wall_s).get("answers", {}) if candidates else {}


def tests_of(patch, lines, covered):
    """The tests that execute a change made in place; None where some of it ran at the import.

    A change of defaults takes effect in the body of the function, not where the definition is executed.
    """
    bodies = {}
    left = {path: set(numbers) for path, numbers in lines.items()}
    for path, header, body in patch.headers:
        bodies.setdefault(path, set()).update(body)
        left[path].difference_update(header)
    tests = set(covering_tests(covered, left)) | set(covering_tests(covered, bodies))
    return None if "" in tests else sorted(tests)


def judge(files, patch, tests, project, run, known, passing):
    """What becomes of a candidate whose changes are made in place; None where that does not tell.

    `passing` holds the tests that are known to pass in the clean project without others before them.
    """

    def variant(chosen):
        reset_and_write(project, files)
        seconds = sum(known["seconds"].get(test, 0.0) for test in chosen)
        cpu_s = min(project.cpu_s, CPU_S + CPU_FACTOR * seconds)
        return run(chosen, patch.apply, cpu_s, min(project.wall_s, WALL_S + WALL_FACTOR * seconds))

    first = variant(tests)
    if first.get("status") == "timeout":
        return {"status": "timeout"}
    if "status" in first or set(tests) - set(first["outcomes"]):
        return None
    if verdict_of(first) != "killed":
        return {"status": verdict_of(first)}
    broken = failing(first["outcomes"])
    # What looks at a function's signature executes no line of it.
    readers = known["covered"]["tests"] if patch.headers else []
    again = variant(sorted({*broken, *known["unfollowed"], *readers}))
    if verdict_of(again) != "killed":
        return {"status": "flaky" if verdict_of(again) == "survived" else verdict_of(again)}
    if disagree(first, again, broken):
        return {"status": "flaky"}
    unknown = sorted(set(again["failures"]) - passing)
    if unknown:
        reset_and_write(project, {})
        seen = run(unknown).get("outcomes", {})
        passing.update(test for test, outcome in seen.items() if outcome in ("passed", "xfailed"))
    # A test that fails without the change as well needs others before it, or fails because of how it is run here.
    if set(again["failures"]) - passing:
        return None
    outcomes = {**known["seen"]["outcomes"], **first["outcomes"], **again["outcomes"]}
    return {"status": "killed", "outcomes": outcomes, "failures": again["failures"]}


def verify(candidate, project, forks, covered):
    """What becomes of a candidate. A killed one has run the whole suite once, and its failing tests twice."""
    tests = covering_tests(covered["lines"], candidate["lines"])
    if not tests:
        return {"status": "uncovered"}
    few = "" not in tests and len(tests) < FEW * len(covered["tests"])
    seen = forks.twice(candidate["files"], tests if few else [])
    verdicts = [verdict_of(one) for one in seen]
    if verdicts[0] != "killed":
        return {"status": verdicts[0]}
    if verdicts[1] != "killed":
        return {"status": "flaky" if verdicts[1] == "survived" else verdicts[1]}
    part, whole = seen if few else reversed(seen)
    if disagree(part, whole, part["outcomes"]):
        return {"status": "flaky"}
    return {"status": "killed", "outcomes": whole["outcomes"], "failures": whole["failures"]}


def disagree(first, second, tests):
    """Whether two runs tell different things of `tests`, or one that fails used other random numbers in each."""
    drawn = [test for test in tests if test in first["failures"]]
    return any(first[facts].get(test) != second[facts].get(test) for facts in FACTS for test in tests) or any(
        first["random_after"].get(test) != second["random_after"].get(test) for test in drawn
    )


def serve(request, known, project, forks, results):
    """Writes a line for each candidate."""
    project.cpu_s, project.wall_s = known["cpu_s"], known["wall_s"]
    preload(known["modules"])
    project.look()
    project.restore()
    freeze()
    answers = in_place(request["candidates"], project, forks, known)
    for candidate in request["candidates"]:
        seen = answers.get(candidate["id"]) or verify(candidate, project, forks, known["covered"])
        seen["id"] = candidate["id"]
        write_line(results, seen)


def serve_late(request, project, forks, results):
    """Where pytest is configured: makes the baseline if there is none, and serves, unless forks have to be early."""
    known = read_known(project)
    if known is None and inside_modules(project.root):
        write_known(project, {"early": True})
        return
    if known is None:
        known = baseline(project, forks, early=False)
        write_known(project, known)
        write_line(results, known["seen"])
    if known["fit"]:
        serve(request, known, project, forks, results)


def serve_early(request, project, forks, results):
    """The same where pytest is not configured yet."""
    known = read_known(project)
    if known is not None and "seen" not in known:
        known = baseline(project, forks, early=True)
        write_known(project, known)
        write_line(results, known["seen"])
    if known is not None and known["fit"]:
        serve(request, known, project, forks, results)


def freeze():
    """Has forks leave alone the objects that exist now."""
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()


def read_known(project):
    """What an earlier verifier found out about the clean tests, or None."""
    path = os.path.join(project.keep, "known.json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def write_known(project, known):
    """Keeps what was found out about the clean tests for later verifiers."""
    with open(os.path.join(project.keep, "known.json"), "w") as file:
        json.dump(known, file)


def write_line(results, value):
    """Sends one result as a line of JSON."""
    results.write(json.dumps(value) + "\n")
    results.flush()


def in_fork(work):
    """Does `work` in a process of its own, so that nothing of it stays in this one."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            sys.stderr.flush()
            os._exit(0)
    os.waitpid(pid, 0)


def main(_):
    """Reads the request from standard input, and answers with a line for each bug."""
    request = json.loads(sys.stdin.read())
    project = ProjectUnderTest(request)
    project.chance.watch()
    sys.dont_write_bytecode = False
    os.makedirs(project.keep, exist_ok=True)
    os.chdir(project.root)
    sys.path.insert(0, project.root)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    with open(request["results"], "w") as results:
        known = read_known(project)
        if known is not None:
            write_line(results, known["seen"])
        if known is None or not known["early"]:
            late = LateForks(project, lambda forks: serve_late(request, project, forks, results))
            in_fork(lambda: pytest.main(project.arguments, plugins=[late]))
            known = read_known(project)
        if known is not None and known["early"]:
            serve_early(request, project, EarlyForks(project), results)
