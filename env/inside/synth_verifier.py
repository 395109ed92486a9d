"""Runs many variants of one project against its tests, one forked process each. Runs inside a sandbox.

Reads one JSON request from standard input:

    {"root": folder of the project, "keep": folder for what outlives this process, "results": file to write,
     "cpu_s": seconds, "wall_s": seconds, "memory_mb": megabytes,
     "candidates": [{"id": text, "files": {path: text}, "lines": {path: [line, ...]}}, ...]}

and writes one JSON object a line to `results`. A request without `candidates` is the baseline and comes first: it runs
the suite, records which test executes which line, and keeps a clean copy of the project. Each candidate is then

    uncovered   no test executes a changed line; nothing was run
    survived    the tests that execute a changed line pass
    timeout     it used up its processor or wall-clock time
    crashed     the process died without an answer
    collection  the tests could not be collected, or none were
    flaky       two runs gave different outcomes
    killed      some test fails: `outcomes` has every test's outcome, `failures` the facts of each failure

What makes it fast: pytest is configured once, and what the project imports from outside is loaded once; every run is a
fork that starts with collecting. The byte code of unchanged files is kept. Only a candidate that fails a test which
executes its change costs a run of the whole suite. Where a conftest imports the project while pytest is being
configured, a fork would inherit the clean modules; there each run forks before pytest is configured.

Standard library and pytest only, Python 3.6 and later.
"""

import contextlib
import gc
import importlib
import json
import os
import sys

import pytest

from gumshoe.env.inside.suite_forks import EarlyForks, LateForks
from gumshoe.env.inside.suite_plugins import inside_modules
from gumshoe.env.inside.suite_project import Project

# Below this share of the suite, the tests that execute a change are run on their own first.
FEW = 0.5


def baseline(project, forks):
    """Runs the clean suite twice, traced and plain, and keeps what later requests need."""
    early = isinstance(forks, EarlyForks)
    loaded = inside_modules(project.root)
    project.save()
    seen = forks.run([], trace=True)
    if "status" in seen:
        return seen
    project.save_byte_code()
    project.look()
    project.restore()
    again = forks.run([])
    seen["cpu_s"] = again.get("cpu_s")
    seen["stable"] = again.get("outcomes") == seen["outcomes"]
    covered = {"lines": seen.pop("covered"), "tests": sorted(seen["outcomes"])}
    known = {"covered": covered, "modules": seen.pop("modules"), "early": early or bool(loaded)}
    with open(os.path.join(project.keep, "known.json"), "w") as file:
        json.dump(known, file)
    return seen


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


def verify(candidate, project, forks, covered):
    """What becomes of a candidate. A killed one has run the whole suite once, and its failing tests twice."""
    tests = covering_tests(covered["lines"], candidate["lines"])
    if not tests:
        return {"status": "uncovered"}
    few = "" not in tests and len(tests) < FEW * len(covered["tests"])
    first = variant_run(candidate, project, forks, tests if few else [])
    if verdict_of(first) != "killed":
        return {"status": verdict_of(first)}
    second = variant_run(candidate, project, forks, [] if few else sorted(first["failures"]))
    if verdict_of(second) != "killed":
        return {"status": "flaky" if verdict_of(second) == "survived" else verdict_of(second)}
    whole, part = (second, first) if few else (first, second)
    if any(whole[facts].get(test) != seen for facts in ("outcomes", "failures") for test, seen in part[facts].items()):
        return {"status": "flaky"}
    return {"status": "killed", "outcomes": whole["outcomes"], "failures": whole["failures"]}


def variant_run(candidate, project, forks, tests):
    project.restore()
    project.write(candidate["files"])
    return forks.run(tests)


def verdict_of(seen):
    if "status" in seen:
        return seen["status"]
    if seen["collection_errors"] or not seen["outcomes"]:
        return "collection"
    failed = [test for test, outcome in seen["outcomes"].items() if outcome in ("failed", "error")]
    return "killed" if failed else "survived"


def answer(request, project, forks, results):
    """Carries out the request, one line of `results` for each candidate."""
    if "candidates" not in request:
        results.write(json.dumps(baseline(project, forks)) + "\n")
        return
    with open(os.path.join(project.keep, "known.json")) as file:
        known = json.load(file)
    preload(known["modules"])
    project.look()
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    for candidate in request["candidates"]:
        seen = verify(candidate, project, forks, known["covered"])
        seen["id"] = candidate["id"]
        results.write(json.dumps(seen) + "\n")
        results.flush()


def forks_early(project):
    path = os.path.join(project.keep, "known.json")
    if not os.path.exists(path):
        return False
    with open(path) as file:
        return json.load(file)["early"]


def main():
    request = json.loads(sys.stdin.read())
    project = Project(request)
    sys.dont_write_bytecode = False
    os.makedirs(project.keep, exist_ok=True)
    os.chdir(project.root)
    sys.path.insert(0, project.root)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(null, descriptor)
    with open(request["results"], "w") as results:
        if forks_early(project):
            answer(request, project, EarlyForks(project), results)
        else:
            late = LateForks(project, lambda forks: answer(request, project, forks, results))
            pytest.main(project.arguments, plugins=[late])


if __name__ == "__main__":
    main()
