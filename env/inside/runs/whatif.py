"""Runs a program several times, each time with one line of the project changed in memory; also watches it unchanged.

    python __main__.py runs.whatif -- -m pytest -q        with the request in the file that GUMSHOE_WHATIF names

The request is `{"variants": [{"path", "line", "do", "time", "when"}], "probes": [...], "failing", "usual_s",
"repairs_only", "folder", "deadline_s"}`. No file changes. The processes, each a fork of the one it hangs from:

    whatif            has pytest loaded, unless that brings code of the project, but not the project
    |- collected      only if `failing` tests are named: pytest imports the project and collects these tests
    |  |- 0           runs them unchanged
    |  `- 1, 2, ...   gives the changed function its new code, then runs them; one fork after another
    |- 0              runs the program unchanged, watched by the probes; only without answers from the forks above
    `- 1, 2, ...      runs the program, and compiles the changed module from a changed syntax tree; several at a time

A variant that has run on the failing tests alone is run on all tests, too, if one of them passes with it (with
`repairs_only`: if all of them pass). So is one whose change takes effect when a module is imported. If the failing
tests do not fail when run alone, or are not pytest's, every run is of all tests.

Into `folder` go `N.jsonl` with the outcomes of run N, or `N.failing.jsonl` if that is of the failing tests alone,
`probes.jsonl` with what the probes saw, and `answer.json`, a list: for each run its `exit_code` (None: stopped for
taking too long, or never started), `duration_s`, how often the change took effect (`hits`), whether all tests were run
(`whole`), or `error`: why the change cannot be made. A run of all tests may use `PATIENCE` times as much processor
time as all tests took unchanged; one that waits instead may take `forks.WALL_FACTOR` times as long as that. A run of
the failing tests alone may take `PATIENCE` times as long as they took unchanged, be it computing or waiting. `usual_s`
is how long all tests take unchanged, for the case that they are not run here. After `deadline_s` seconds, all runs are
over: those of the failing tests alone end in time for all tests to run once more.
"""

import contextlib
import importlib
import json
import os
import sys
import time
import traceback
import warnings

from ..debugger import hooks
from ..programs.program import flush_output, is_pytest, read_request, run_program
from ..programs.runner_hooks import FAILED
from .change import ChangeError, Variant, count_hits, install, source_of
from .forks import answer_of, run_all, start_fork
from .patches import Functions, apply, loaded_files
from .probes import ProbeDebugger
from .unittest_runs import write_outcomes

PATIENCE = 5
LEAST_S, LEAST_IN_FORKS_S = 3.0, 1.5
"""What a variant may take at least, however fast the unchanged run was; the latter if pytest has collected already."""
IMPORT_S = 30.0
"""How long the import of pytest may take that shows what it imports."""
WRITING_S = 0.5
"""How long after the deadline the forks with the failing tests may still hand over what is known."""


class Run:
    """A run in a fork.

    Attributes:
        number: of the variant, 0 for the unchanged run.
        record: the file for the outcomes of its tests.
        hits_file: the file that grows by a byte each time that its change takes effect.
        whole, exit_code, duration_s, hits: as in the answer about it.
    """

    def __init__(self, number, folder, whole, exit_code=None, duration_s=0.0, hits=0):
        self.number = number
        name = os.path.join(folder, "{}{}".format(number, "" if whole else ".failing"))
        self.record, self.hits_file = name + ".jsonl", name + ".hits"
        self.whole = whole
        self.exit_code = exit_code
        self.duration_s = duration_s
        self.hits = hits
        self.fork = None

    def as_data(self):
        """The answer about it."""
        names = ("whole", "exit_code", "duration_s", "hits")
        return {name: getattr(self, name) for name in names}

    def start(self):
        """Forks. Returns whether this is the child."""
        for left in (self.record, self.hits_file):
            with contextlib.suppress(OSError):
                os.remove(left)
        self.fork = start_fork()
        return self.fork is None

    def end(self):
        """Notes how it ended, and ends what is left of it: if that was its first process, it was too slow."""
        self.exit_code = self.fork.exit_code
        self.fork.kill()
        self.duration_s = round(time.time() - self.fork.began, 3)
        with contextlib.suppress(OSError):
            self.hits = os.path.getsize(self.hits_file)

    def failures(self):
        """The ids of the tests that failed."""
        try:
            with open(self.record, "rb") as file:
                outcomes = [json.loads(line.decode("utf-8")) for line in file]
        except (OSError, ValueError):
            return set()
        last = {each["id"]: each["outcome"] for each in outcomes}
        return {each["id"] for each in outcomes if each["outcome"] in FAILED or last[each["id"]] == "crashed"}


class ChangedRuns:
    """The runs that a request asks for."""

    def __init__(self, program, request):
        self._program = program
        self._request = request
        self._folder = request["folder"]
        self._end = time.time() + request["deadline_s"]
        self._failing = set(request.get("failing") or ())

    def run(self):
        """Carries out all runs. Returns the answers about them."""
        changes, errors = self._changes()
        runs = self._run_failing(changes) if self._failing and is_pytest(self._program) else {}
        if not runs:
            runs = {0: self._run_unchanged()}
        runs.update(self._run_whole(changes, runs))
        answers = {number: run.as_data() for number, run in runs.items()}
        answers.update((number, {"error": error}) for number, error in errors.items())
        return [answers[number] for number in range(len(self._request["variants"]) + 1)]

    def _changes(self):
        """The changes that variants make to their modules, and why the others cannot be made; both by number."""
        sources, changes, errors = {}, {}, {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, facts in enumerate(self._request["variants"], start=1):
                variant = Variant(**facts)
                path = os.path.abspath(variant.path)
                try:
                    if path not in sources:
                        sources[path] = source_of(variant.path)
                    changes[number] = sources[path].change(variant)
                except ChangeError as error:
                    errors[number] = str(error)
        return changes, errors

    def _is_late(self):
        return time.time() >= self._end

    # - all tests, in a fork for each variant

    def _run_unchanged(self):
        (unchanged,) = run_all([lambda: self._start(0, None)], lambda run: self._is_late())
        if self._failing and unchanged.exit_code is None:
            unchanged.whole = False  # What was known of the tests before says more.
        return unchanged

    def _run_whole(self, changes, runs):
        """Runs all tests with those changes that have not been run, or that help. Returns the runs by number, without
        those that were stopped for want of time if there is a run of the failing tests alone.
        """
        usual_s = runs[0].duration_s if runs[0].whole else self._request["usual_s"]
        patience = max(LEAST_S, PATIENCE * usual_s)
        helping = [number for number in changes if number in runs and self._helps(runs[number])]
        left = helping + [number for number in changes if number not in runs]
        starts = [lambda number=number: self._start(number, changes[number]) for number in left]
        done = run_all(starts, lambda run: self._is_late() or run.fork.has_used(patience))
        is_late = self._is_late()
        return {run.number: run for run in done if run.number not in runs or run.exit_code is not None or not is_late}

    def _helps(self, run):
        """Whether a variant that has run on the failing tests alone is to run on all tests."""
        if run.exit_code is None:
            return False
        failures = run.failures()
        return not failures if self._request["repairs_only"] else failures < self._failing

    def _start(self, number, change):
        """Starts the program in a fork, with a change or unchanged."""
        run = Run(number, self._folder, whole=True)
        if run.start():
            watcher = None
            if change is not None:
                install(change, run.hits_file)
            elif self._request.get("probes"):
                watcher = ProbeDebugger(self._request["probes"], os.path.join(self._folder, "probes.jsonl"))
            self._run_program(run.record, watcher)
        return run

    def _run_program(self, record, watcher=None):
        """Runs the program in this process, with the outcomes of its tests in a file, and ends the process."""
        os.environ["GUMSHOE_OUTCOMES"] = record
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        if watcher is not None:
            hooks.install(watcher)
        if not is_pytest(self._program):
            write_outcomes(record)
            if watcher is not None:
                watcher.engage()
        code = 1
        try:
            code = run_program(self._program, watcher)
        except BaseException:  # an error of ours, since the program's end in `run_program`
            traceback.print_exc()
        finally:
            flush_output()
            os._exit(code)

    # - the failing tests alone, in forks of a process that has collected them

    def _run_failing(self, changes):
        """The runs of the failing tests alone, unchanged (0) and with each change to functions that exist once modules
        are imported; none if it is not just these tests that fail without the others.
        """
        only = os.path.join(self._folder, "only.json")
        with open(only, "w") as file:
            json.dump(sorted(self._failing), file)

        def collect(writer):
            _import_pytest(self._program)
            from . import outcomes  # which needs it

            def work(session):
                runs = self._run_collected(session, changes, outcomes.InChild)
                with open(writer, "w") as file:
                    json.dump([(run.number, run.as_data()) for run in runs], file)

            os.environ["GUMSHOE_ONLY"] = only
            outcomes.plugin = outcomes.Collected(work)
            self._run_program(os.path.join(self._folder, "collected.jsonl"))

        answers = answer_of(collect, self._end + WRITING_S - time.time())
        pairs = answers if isinstance(answers, list) else ()
        return {number: Run(number, self._folder, **answer) for number, answer in pairs}

    def _run_collected(self, session, changes, in_child):
        """Runs the tests that pytest has collected. Returns the runs; raises `in_child` in forks.

        `in_child` leaves `work` for `outcomes.Collected`, which catches it: pytest runs the tests in the fork, and
        `_run_program`, below it on the stack, ends the process. The plugin that writes the outcomes has had a file
        since pytest was configured, `collected.jsonl`: a fork gives it one of its own. It goes by the name under which
        `outcomes.pytest_configure` has registered it.
        """
        end = self._end - min(self._request["usual_s"], (self._end - time.time()) / 2)
        functions = Functions(os.getcwd())

        def run_patched(number, patch, patience):
            run = Run(number, self._folder, whole=False)
            if run.start():
                count_hits(run.hits_file)
                apply(patch)
                session.config.pluginmanager.get_plugin("gumshoe_outcomes_writer").path = run.record
                raise in_child
            run.fork.wait(min(end, run.fork.began + patience))
            run.end()
            return run

        unchanged = run_patched(0, (), float("inf"))
        if unchanged.failures() != self._failing:
            return []
        runs, patience = [unchanged], max(LEAST_IN_FORKS_S, PATIENCE * unchanged.duration_s)
        for number, change in sorted(changes.items()):
            patch = functions.replacement(change.path, change.former, change.code)
            if patch is not None and time.time() < end:
                runs.append(run_patched(number, patch, patience))
        return runs


def _import_pytest(program):
    """Imports pytest from where the program would."""
    path = list(sys.path)
    if program[0] == "-m":
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module("pytest")
    finally:
        sys.path[:] = path


def _is_apart(program):
    """Whether pytest can be imported without code of the project, such as pytest itself or a library that it uses.

    Tried in a fork: a change does not reach what was imported before it.
    """

    def look(writer):
        _import_pytest(program)
        os.write(writer, json.dumps(not loaded_files(os.path.realpath(os.getcwd()))).encode("ascii"))
        os._exit(0)

    return "pytest" in sys.modules or answer_of(look, IMPORT_S) is True


def main(arguments):
    """Carries out the request. Returns the exit code, 2 for a program that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_WHATIF", "runs.whatif")
    if request is None:
        return 2
    if is_pytest(program) and _is_apart(program):
        _import_pytest(program)  # so that each fork has it
    answers = ChangedRuns(program, request).run()
    with open(os.path.join(request["folder"], "answer.json"), "w") as file:
        json.dump(answers, file)
    return 0
