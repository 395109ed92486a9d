"""A debugger that runs a program and talks JSON lines over a socket of its own.

    GUMSHOE_CONTROL=3 python __main__.py debugger.main -- -m pytest -x
    GUMSHOE_CONTROL=3 python __main__.py debugger.main -- script.py argument

It is started in the root of the workspace; "workspace frame" means a frame whose file is below that folder and not in
an installed package. Only workspace frames are stopped in and shown. SIGINT and `breakpoint()` stop anywhere: they
show the workspace frames that called, or the running frame alone if there are none.

The control socket is the file descriptor named by GUMSHOE_CONTROL. It carries one JSON object a line each way; the
program's own output stays on its terminal, so nothing that it prints can be taken for an answer.

Requests hold pdb command lines, or all breakpoints that there are to be from now on, or both; the breakpoints are set
first:

    {"lines": ["b cart.py:12, n > 3", "c", "p n"]}
    {"lines": ["c"], "breakpoints": [{"number": 1, "path": "cart.py", "line": 12}]}

Answers come when all commands are done, or the program has ended:

    {"state": "stopped", "results": [{"command": ..., "output": ..., "stop": ...}], "stop": {...},
     "frames": [...], "index": 1, "breakpoints": [...], "checkpoints": [name, ...], "exit_code": null}

| `state` | what it means |
|---|---|
| `ready` | the program is not started |
| `stopped` | it is stopped, and `stop` says where and why; `index` is the place of the chosen frame in `frames` |
| `exited` | it has ended, with `exit_code` |
| `stale` | a file that it has loaded has changed since the last answer: the files are `changed`, no command was run |
| `restart` | the host is to start it anew, and to run the commands in `rest` there |

The `reason` of a stop is `breakpoint`, `step`, `jump` (a command has set the line that runs next), `return`, `watch` (a
watched value has changed, or a watch has ended), `raised` (`catch` wants the exception), `exception` (a step has met
one), `post-mortem` (a test failed, or nothing caught the exception), `interrupt`, or `breakpoint() call` in the code.
In a result it may also be `frame`, where a command has chosen another frame.

A result may have further facts: `failed` if the command could not be run; `values`, the pairs of name and value that
it shows; and where the program has run, `log`, what logpoints have seen meanwhile, and `log_dropped`, how many more
values they have seen.

Two messages are no answers. `{"interim": true, "results": [...], "breakpoints": [...]}` comes before the
program runs on, if it has something that would be lost should the program never stop again; the answer repeats it.
`{"gone": exit code}` comes from a held checkpoint in place of an answer, when the program has ended without giving one.

SIGINT stops a running program where it is, or ends a long evaluation. Programs that block SIGINT, or sit in C code
that does not check for signals, cannot be stopped this way. A program that sets a trace function switches breakpoints
off until the next stop. One that ends tracing, by `sys.settrace(None)` or by a recursion that is too deep to call a
trace function, switches them off until the next test, or until a function is entered that had a breakpoint when it was
loaded; what comes next says so. Only one thread is stopped at a time, while the others run on; threads that were
started while there was no breakpoint are never stopped. Forked children run free of the debugger.

Time travel: `checkpoint NAME` and `restore NAME` keep the program in forks and go back to them; see `checkpoints`.
"""

import os
import shutil
import signal
import sys

from ..programs.channel import JsonChannel
from ..programs.program import (
    find_script,
    is_pytest,
    is_python,
    run_program,
    use_right_interpreter,
    wait_for_threads,
)
from .hooks import install
from .tracer import Debugger

_PREFIX = "gumshoe-pdb-"
_VARIABLE = "TMPDIR"
THREADS_S = 2.0
"""How long threads may run on when all tests are over."""


def own_scratch():
    """Gives this process, and those it starts, a new folder for temporary files. Removes folders of dead processes."""
    common = os.environ.get(_VARIABLE) or "/tmp"  # noqa: S108 - where programs look when the variable is not set
    mine = os.path.join(common, _PREFIX + str(os.getpid()))
    try:
        for name in os.listdir(common):
            number = name[len(_PREFIX) :]
            if name.startswith(_PREFIX) and number.isdigit() and not os.path.exists("/proc/" + number):
                shutil.rmtree(os.path.join(common, name), ignore_errors=True)
        shutil.rmtree(mine, ignore_errors=True)  # of an earlier process with this id
        os.mkdir(mine, 0o700)
    except OSError:
        return
    os.environ[_VARIABLE] = mine
    known = sys.modules.get("tempfile")
    if known is not None:
        known.tempdir = None  # It has already noted the shared one.


def release_children(debugger):
    """Lets processes that the program forks run free of the debugger."""

    def release():
        if not debugger.checkpoints.forking:
            debugger.detach()
            signal.signal(signal.SIGINT, signal.default_int_handler)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=release)
        return
    for name in ("fork", "forkpty"):  # Python 3.6
        setattr(os, name, _releasing(getattr(os, name), release))


def _releasing(fork, release):
    def releasing():
        result = fork()
        if (result if isinstance(result, int) else result[0]) == 0:
            release()
        return result

    return releasing


USAGE = "usage: GUMSHOE_CONTROL=FD python __main__.py debugger.main -- -m MODULE | SCRIPT [ARGUMENT ...]"


def main(arguments):
    """Waits to be told to start, runs the program, says how it ended. Returns its exit code."""
    program = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    if not program or program == ["-m"] or "GUMSHOE_CONTROL" not in os.environ:
        print(USAGE, file=sys.stderr)
        return 2
    use_right_interpreter(program, "debugger.main")
    if not is_python(program) and os.path.exists(find_script(program[0])):
        print("cannot debug {}: it is not a Python program".format(program[0]), file=sys.stderr)
        return 2
    debugger = Debugger(JsonChannel(int(os.environ.pop("GUMSHOE_CONTROL"))), os.getcwd(), is_pytest(program))
    install(debugger)
    release_children(debugger)
    signal.signal(signal.SIGINT, debugger.on_interrupt)
    _empty_stdin()
    own_scratch()
    debugger.take_request()
    debugger.serve()
    code = run_program(program, debugger)
    debugger.end_of_main()
    runs_tests = is_pytest(program) or program[:2] == ["-m", "unittest"]
    wait_for_threads(THREADS_S if runs_tests else None, lambda: debugger.state == "stopped")
    debugger.finish(code)
    return code


def _empty_stdin():
    """Gives the program an empty input, so that it never waits for input that nobody types."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
