"""Runs a program's tests and records every call of one function.

    GUMSHOE_TRACE=request.json python gumshoe_trace.py -- -m pytest -q

Standard library only, Python 3.6 to 3.14. The request is `{"function": {"path", "line", "name"}, "record",
"deadline_s"}`; what goes into the file `record` is described in `gumshoe_calls`. The program runs in a child; at the
deadline, the call in progress is recorded as unfinished, and the program is killed. A program that runs none of pytest,
unittest and sympy's runner counts as one test, which fails if the exit code is not 0.
"""

import contextlib
import os
import signal
import sys
import time

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [_HERE, *(each for each in sys.path if os.path.realpath(each) != _HERE)]

import gumshoe_calls  # noqa: E402 - it is beside this file
import gumshoe_children  # noqa: E402
import gumshoe_sympy_hooks  # noqa: E402
import gumshoe_unittest_hooks  # noqa: E402
from gumshoe_call_events import watch  # noqa: E402
from gumshoe_program import Nobody, is_pytest, read_request, run_program  # noqa: E402

GRACE_S = 1.0
TIMED_OUT = 124


def _child(program, request):
    """Runs the program under a recorder. Returns its exit code."""
    first = "collection" if is_pytest(program) else " ".join(program)
    recorder = gumshoe_calls.CallRecorder(request["function"], request["record"], os.getcwd(), first)
    gumshoe_calls.recorder = recorder

    def give_up(*_):
        recorder.give_up()
        os._exit(TIMED_OUT)

    signal.signal(signal.SIGUSR2, give_up)
    os.environ["GUMSHOE_PLUGINS_BEFORE"] = os.environ.get("PYTEST_PLUGINS", "")
    os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, ("gumshoe_calls", os.environ["GUMSHOE_PLUGINS_BEFORE"])))
    if not is_pytest(program):
        gumshoe_unittest_hooks.observe(recorder)
        gumshoe_sympy_hooks.observe(recorder)
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
    program, request = read_request(arguments, "GUMSHOE_TRACE", __file__)
    if request is None:
        return 2
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os._exit(_child(program, request))
    status = gumshoe_children.wait(pid, time.time() + request["deadline_s"])
    if status is None:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGUSR2)
        status = gumshoe_children.wait(pid, time.time() + GRACE_S)
    gumshoe_children.kill(pid)  # with everything that the program has left running
    if status is None:
        os.waitpid(pid, 0)
    return TIMED_OUT if status is None else os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
