"""Runs a program's tests and records every call of one function.

    GUMSHOE_TRACE=request.json python __main__.py runs.trace -- -m pytest -q

Standard library only, Python 3.6 to 3.14. The request is `{"function": {"path", "line", "name"}, "record",
"deadline_s"}`; what goes into the file `record` is described in `calls`. The program runs in a child; at the
deadline, the call in progress is recorded as unfinished, and the program is killed. A program that runs none of pytest,
unittest and sympy's runner counts as one test, which fails if the exit code is not 0.
"""

import contextlib
import os
import signal
import sys
import time

from ..programs import children, sympy_hooks, unittest_hooks
from ..programs.program import Nobody, is_pytest, read_request, run_program
from . import calls
from .call_events import watch

GRACE_S = 1.0
TIMED_OUT = 124


def _child(program, request):
    """Runs the program under a recorder. Returns its exit code."""
    first = "collection" if is_pytest(program) else " ".join(program)
    recorder = calls.CallRecorder(request["function"], request["record"], os.getcwd(), first)
    calls.recorder = recorder

    def give_up(*_):
        recorder.give_up()
        os._exit(TIMED_OUT)

    signal.signal(signal.SIGUSR2, give_up)
    os.environ["GUMSHOE_PLUGINS_BEFORE"] = os.environ.get("PYTEST_PLUGINS", "")
    os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, (calls.__name__, os.environ["GUMSHOE_PLUGINS_BEFORE"])))
    if not is_pytest(program):
        unittest_hooks.observe(recorder)
        sympy_hooks.observe(recorder)
    recorder.watching = watch(recorder)
    recorder.watching.start()
    code = 1
    try:
        code = run_program(program, Nobody)
    finally:
        if not is_pytest(program) and not any(recorder.tests.values()):
            recorder.end(code != 0)
        recorder.finish()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return code


def main(arguments):
    """Carries out the request. Returns the exit code of the program, 2 for one that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_TRACE", "runs.trace")
    if request is None:
        return 2
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os._exit(_child(program, request))
    status = children.wait(pid, time.time() + request["deadline_s"])
    if status is None:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR2)
        status = children.wait(pid, time.time() + GRACE_S)
    children.kill(pid)  # with everything that the program has left running
    if status is None:
        os.waitpid(pid, 0)
    return TIMED_OUT if status is None else os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
