"""Runs a program's tests and records every call of one function; also the pytest plugin for this. PYTEST_DONT_REWRITE

    GUMSHOE_TRACE=request.json python __main__.py runs.trace -- -m pytest -q

Works with pytest 3.6 and later. The request is `{"function": {"path", "line", "name"}, "record", "deadline_s"}`. The
program runs in a child; at the deadline, the call in progress is recorded as unfinished, and the program is killed. A
program that runs none of pytest, unittest and sympy's runner counts as one test, which fails if the exit code is not 0.
After each test in which the function was called, a JSON line is appended to `record`:

    {"test": ..., "failed": ..., "unfinished": ..., "lost": ..., "calls": how many, "kept": [call, ...]}

before each test `{"begins": test}`, and at the end `{"tests": {"failed": n, "passed": n}}`. A call is `{"number": its
place among the test's calls, from 1, "count": calls that were equal, "arguments": {name: value}, "caller": {"path",
"line", "function"} or null, "steps": [[line, {name: new value}, exception that was raised there, or ""], ...],
"skipped": steps left out of the middle, "outcome": "returned", "raised" or "unfinished", "value": what was returned or
raised, "yields": [value, ...], "yielded": how many}. Calls are equal when their arguments, lines and outcomes are. For
`self`, the attributes are followed, as `self.NAME`.

What a failing test does after it has failed is not recorded, nor is the code that builds the message of a failed
assertion. A test is `lost` if tracing ended in the middle of it, as in too deep a recursion before Python 3.12.
"""

import contextlib
import os
import signal
import time

from ..debugger.stops import ASYNC_GENERATOR, COROUTINE, END_OF_ITERATION, caller_of
from ..programs.channel import append_lines
from ..programs.program import flush_output, is_pytest, read_request, run_program
from ..programs.project import project_path
from ..programs.runner_hooks import Observer, announce_plugin, observe, withdraw_plugin
from .calls import PLAIN, Call, Describer, RunningTest, describe_error, variables_of
from .forks import start_fork
from .watching import CALLER_DEPTH, watch_function

_getpid = os.getpid
GRACE_S = 1.0
"""How long the program may take to write its calls once the time is up."""
TIMED_OUT = 124
ALL_BYTES = 4 << 20
"""Once all lines of the record have so many bytes, the calls of later tests are only counted."""
PASSING_CALLS, ALL_CALLS = 400, 1000
"""Calls that are recorded of all passing tests, and of all tests."""
YIELDS = 20
"""Values that are recorded of what one call yields."""


class CallRecorder(Observer):
    """Takes in what is seen of a function, and how the tests end.

    Attributes:
        on: whether what happens now is recorded.
        watching: what watches the function (see `watch_function`); None before it does.
        tests: how many tests have failed, and how many have passed.
        test: the running test with its calls.

    Args:
        function: its `path` relative to the root, `line` (of its first decorator, or of `def`) and `name`.
        record: the file to write to.
        root: the root of the project.
        first: what to call everything that runs before the first test.
    """

    def __init__(self, function, record, root, first):
        self.function = function
        self.record = record
        self.root = root
        self.on = False
        self.watching = None
        self.tests = {"failed": 0, "passed": 0}
        self._paths = {}  # {file name: its path in the project}
        self._wanted = {}  # {id of a code object: (whether it is the function's, the code object)}
        self._describer = Describer()
        self._process = _getpid()
        self._written = self._calls = 0  # bytes and calls of all tests
        self._finished = False
        self._passing = set()  # what equal calls have in common, of calls in passing tests
        self._over = False  # whether the test has failed already
        self.start_test(first)

    # - tests

    def start_test(self, test):
        """A test begins."""
        self.test = RunningTest(test)
        self._describer.begin()
        self._over = False
        self.on = True
        self._append({"begins": test})
        if self.watching is not None:
            self.watching.start()

    def run(self):
        """The test's own code begins."""
        self.on = not self._over

    def pause(self, error):
        """A phase of the test is over."""
        self.on = False
        self._over = self._over or error is not None

    def report(self):
        """An assertion has failed: its message is being built, and nothing that follows counts."""
        self.on = False

    def end_test(self, failed):
        """The test is over."""
        self.on = False
        lost = self.watching is not None and self.watching.stop()
        if failed:
            self.test.keep_active()
        if failed is not None:
            self.tests["failed" if failed else "passed"] += 1
            self._write_test(failed, lost=lost)
        self.test.active = {}

    def finish(self):
        """All tests are over, or the time is up."""
        if not self._finished:
            self._finished = True
            self._append({"tests": self.tests})

    def give_up(self):
        """The time is up in the middle of a test, which therefore counts as failed."""
        self.on = False
        self.test.keep_active()
        self.tests["failed"] += 1
        self._write_test(True, unfinished=True)
        self.finish()

    def _write_test(self, failed, unfinished=False, lost=False):
        test = self.test
        if not test.number and not lost:
            return
        full = self._written >= ALL_BYTES or self._calls >= ALL_CALLS
        kept = [] if full else test.kept()
        if not failed:
            kept = [call for call in kept if self._is_new(call)]
        self._calls += len(kept)
        data = {"test": test.name, "failed": failed, "unfinished": unfinished, "lost": lost, "calls": test.number}
        self._append(dict(data, kept=[call.as_data() for call in kept]))

    def _is_new(self, call):
        key = call.key()
        if key in self._passing or len(self._passing) >= PASSING_CALLS:
            return False
        self._passing.add(key)
        return True

    def _append(self, data):
        if _getpid() == self._process:  # not in one that the tests have forked
            self._written += append_lines(self.record, [data])

    # - what the function does

    @property
    def active(self):
        """The running test's calls that go on, by the ids of their frames."""
        return self.test.active

    def _active_call(self, frame):
        """The call of a frame, if it is recorded now; else None."""
        return self.test.active.get(id(frame)) if self.on else None

    def wants(self, code):
        """Whether a code object is the function's."""
        known = self._wanted.get(id(code))
        if known is None:
            function = self.function
            wanted = code.co_name == function["name"] and code.co_firstlineno == function["line"]
            # The code object is kept with its id, so that no other can get the same one.
            known = self._wanted[id(code)] = (wanted and self._path(code.co_filename) == function["path"], code)
        return known[0]

    def _path(self, filename):
        if filename not in self._paths:
            found = project_path(filename, self.root)
            if found is None:
                found = project_path(os.path.realpath(os.path.join(self.root, filename)), os.path.realpath(self.root))
            self._paths[filename] = found
        return self._paths[filename]

    def called(self, frame):
        """A call begins."""
        if not self.on:
            return
        test = self.test
        test.number += 1
        call = test.active[id(frame)] = Call(test.number, self._caller(frame))
        self._look(frame, call, call.arguments)

    def line(self, frame):
        """A line of a call begins."""
        call = self._active_call(frame)
        if call is None:
            return
        self.test.lines += 1
        if self.test.is_full():
            call.length += 1
            return
        self._settle(frame, call)
        call.add(frame.f_lineno)

    def yielded(self, frame, value):
        """A generator yields, or a coroutine waits."""
        call = self._active_call(frame)
        if call is None:
            return
        self._settle(frame, call)
        if not frame.f_code.co_flags & (COROUTINE | ASYNC_GENERATOR):
            call.yielded += 1
            if len(call.yields) < YIELDS:
                call.yields.append(self._describer.describe(value))

    def raised(self, frame, error):
        """An exception is raised in a call, or reaches it. It may still be caught there."""
        call = self._active_call(frame)
        if call is not None:
            call.error_seen = error

    def returned(self, frame, value):
        """A call ends."""
        self._end(frame, "returned", value)

    def unwound(self, frame, error):
        """A call ends with an exception."""
        self._end(frame, "raised", error)

    def _end(self, frame, outcome, value):
        call = self._active_call(frame)
        if call is None:
            return
        del self.test.active[id(frame)]
        if outcome == "raised":
            call.error_seen = None
        self._settle(frame, call)
        call.outcome = outcome
        call.value = describe_error(value) if outcome == "raised" else self._describer.describe(value)
        self.test.keep(call)

    def _settle(self, frame, call):
        """Takes in what the line that just ended did."""
        step = call.step()
        if step is None or self.test.is_full():
            return
        self._look(frame, call, step[1])
        if call.error_seen is not None:
            if not isinstance(call.error_seen, END_OF_ITERATION):
                step[2] = describe_error(call.error_seen)
            call.error_seen = None

    def _look(self, frame, call, found):
        """Puts variables that are new or have changed into `found`."""
        for name, value in variables_of(frame):
            known = call.values.get(name)
            plain = type(value) in PLAIN
            if known is not None and (known[0] is value if plain else not self._describer.has_time):
                continue
            text = self._describer.describe(value)
            if known is None or known[1] != text:
                found[name] = text
                self.test.size += len(text)
            call.values[name] = (value if plain else None, text)  # If we held other values, they would live longer.

    def _caller(self, frame):
        """The nearest calling frame in the project."""
        caller = caller_of(frame, self._path, CALLER_DEPTH)
        if caller is None:
            return None
        code = caller.f_code
        return {"path": self._path(code.co_filename), "line": caller.f_lineno or 1, "function": code.co_name}


recorder = None
"""The recorder of this process, set by the script that runs the program."""


def pytest_addoption(parser):
    """Called when pytest has loaded this module."""
    withdraw_plugin()


def pytest_configure(config):
    """Has pytest tell the recorder about its tests."""
    from .outcomes import observe_pytest  # which needs pytest

    observe_pytest(config, recorder)


def pytest_collectreport(report):
    """A file that cannot be collected counts as a failing test of that name."""
    if report.failed:
        recorder.test.name = report.nodeid or "collection"
        recorder.end_test(True)
    recorder.start_test("collection")


def _child(program, request):
    """Runs the program under a recorder. Returns its exit code."""
    first = "collection" if is_pytest(program) else " ".join(program)
    global recorder
    recorder = CallRecorder(request["function"], request["record"], os.getcwd(), first)

    def give_up(*_):
        recorder.give_up()
        os._exit(TIMED_OUT)

    signal.signal(signal.SIGUSR2, give_up)
    announce_plugin(__name__)
    if not is_pytest(program):
        observe(recorder)
    recorder.watching = watch_function(recorder)
    recorder.watching.start()
    code = 1
    try:
        code = run_program(program)
    finally:
        if not is_pytest(program) and not any(recorder.tests.values()):
            recorder.end_test(code != 0)
        recorder.finish()
        flush_output()
    return code


def main(arguments):
    """Carries out the request. Returns the exit code of the program, 2 for one that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_TRACE", "runs.trace")
    if request is None:
        return 2
    fork = start_fork()
    if fork is None:
        os._exit(_child(program, request))
    code = fork.wait(time.time() + request["deadline_s"])
    if code is None:
        with contextlib.suppress(OSError):
            os.kill(fork.pid, signal.SIGUSR2)
        code = fork.wait(time.time() + GRACE_S)
    fork.kill()  # with everything that the program has left running
    return TIMED_OUT if code is None else code
