"""Runs a program as `python` would: one of tests, or any other; under a debugger, if one is given."""

import builtins
import contextlib
import importlib.util
import io
import json
import os
import runpy
import shutil
import sys
import threading
import time
import traceback
import types

from .project import trace_below
from .runner_hooks import has_run_tests

STARTER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__main__.py")
"""The script that starts the programs of this package."""
_open = io.open
ENDING_S = 2.0
_WAITING = ("_shutdown", "_python_exit")
"""The functions in which a process waits at its end for the threads that are left."""
_run_module_as_main = vars(runpy)["_run_module_as_main"]
"""What `python -m` itself calls."""


def read_request(arguments, variable, wrapper):
    """The program that one of ours, `wrapper`, is to run, and the request in the file that a variable names.

    The request is None for anything but a Python program; standard error says so. A program that another interpreter
    has to run is started again there, and this function does not return.
    """
    program = arguments[arguments.index("--") + 1 :]
    use_right_interpreter(program, wrapper)
    if not is_python(program):
        print("{} is not a Python program".format(program[0]), file=sys.stderr)
        return program, None
    with _open(os.environ.pop(variable)) as file:
        return program, json.load(file)


def flush_output():
    """Writes out what the program has printed, whatever it has replaced its streams with."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        if stream is not None:
            with contextlib.suppress(Exception):
                stream.flush()


# - running a program


def run_program(arguments, debugger=None, as_given=False):
    """Runs `-m MODULE ...`, `-c CODE ...`, or a script with its arguments. Returns the exit code.

    An exception that nothing catches is shown to the debugger's `post_mortem` before it ends the program. Unless the
    program is to run as given, pytest gets options that keep its plugins out of the debugger's way. Threads that are
    left do not keep a program whose tests unittest ran from ending, unless there is a debugger; the plugin
    `outcomes` does the same for pytest, nothing does for sympy's runner.
    """
    code = _run(arguments, debugger, as_given)
    if debugger is None and has_run_tests():
        end_despite_threads(code)
    return code


def _run(arguments, debugger, as_given):
    if not as_given and is_pytest(arguments):
        arguments = [*arguments, *_pytest_options()]
    main_module = types.ModuleType("__main__")
    vars(main_module)["__builtins__"] = builtins
    sys.modules["__main__"] = main_module
    try:
        if arguments[0] == "-m":
            _run_module(arguments[1], arguments[2:])
        elif arguments[0] == "-c":
            sys.argv = ["-c", *arguments[2:]]
            sys.path.insert(0, "")
            _execute(compile(arguments[1], "<string>", "exec"), main_module)
        else:
            _run_script(find_script(arguments[0]), arguments[1:], main_module)
    except SystemExit as error:
        return exit_code(error.code)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        kind, value, trace = sys.exc_info()
        if debugger is not None:
            debugger.post_mortem(kind, value, trace)
        _print_exception(kind, value, trace)
        return 1
    return 0


def _pytest_options():
    """Options that keep plugins from running tests in other processes, or from tracing them.

    Those of xdist and forked are not among them: our plugin, which the first option loads, switches these two off.
    """
    options = ["-p", "{}.runs.outcomes".format(__package__.rpartition(".")[0])]
    loads_plugins = not os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    if loads_plugins and importlib.util.find_spec("pytest_cov") is not None:
        options.append("--no-cov")
    return options


def _execute(code, module):
    exec(code, module.__dict__)  # noqa: S102 - the program to be debugged


def _run_module(name, arguments):
    sys.argv = [name, *arguments]
    sys.path.insert(0, os.getcwd())
    _run_module_as_main(name)


def _run_script(path, arguments, main_module):
    sys.argv = [path, *arguments]
    if os.path.isdir(path):
        runpy.run_path(path, run_name="__main__")
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        with _open(path, "rb") as stream:
            source = stream.read()
    except OSError as error:
        raise _refusal("cannot run {}: {}".format(path, error.strerror)) from None
    if not is_python([path]):
        raise _refusal("cannot run {}: it is not a Python program".format(path))
    code = compile(source, path, "exec", 0, True)
    main_module.__file__ = path
    _execute(code, main_module)


def _refusal(why):
    print(why, file=sys.stderr)
    return SystemExit(2)


def exit_code(code):
    """The exit status for the code of a SystemExit, which is printed if it is text."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


def _print_exception(kind, value, trace):
    """Prints an exception as Python does, without the frames of this file."""
    with contextlib.suppress(OSError, ValueError):
        traceback.print_exception(kind, value, trace_below(trace, __file__))


# - what a program is


def is_pytest(arguments):
    """Whether a program is pytest, run as a module or as a command."""
    name = arguments[1] if arguments[0] == "-m" else os.path.basename(arguments[0])
    return name in ("pytest", "py.test")


def is_python(program):
    """Whether a program is a module, code, or a script without another interpreter."""
    path = find_script(program[0])
    if program[0] in ("-m", "-c") or os.path.isdir(path):
        return True
    source = _beginning(path)
    if source is None or b"\0" in source:
        return False
    return not source.startswith(b"#!") or b"python" in source.partition(b"\n")[0]


def _beginning(path):
    """The first bytes of a file; None where it cannot be read."""
    try:
        with _open(path, "rb") as stream:
            return stream.read(4096)
    except OSError:
        return None


def find_script(name):
    """The path of a script given as a path or as a command on PATH."""
    return name if os.path.exists(name) else shutil.which(name) or name


def use_right_interpreter(program, wrapper):
    """Starts over, under the same program of ours, in the interpreter that a command such as `pytest` belongs to."""
    interpreter = other_interpreter(program)
    if interpreter is not None:
        os.execv(interpreter, [interpreter, STARTER, wrapper, "--", find_script(program[0]), *program[1:]])


def other_interpreter(program):
    """The Python that a command on PATH, such as `pytest`, asks for, if it is not this one; else None."""
    if program[0].startswith("-") or os.path.exists(program[0]):
        return None
    first = (_beginning(find_script(program[0])) or b"").partition(b"\n")[0]
    if not first.startswith(b"#!") or b"python" not in first:
        return None
    words = os.fsdecode(first[2:]).split()
    wanted = shutil.which(words[1]) if words[0].endswith("/env") and len(words) > 1 else words[0]
    return wanted if wanted and os.path.abspath(wanted) != os.path.abspath(sys.executable) else None


# - ending with threads that are left


def wait_for_threads(limit_s=None, is_busy=lambda: False):
    """Waits for what the program has left running, as the interpreter does at its end; at most some seconds in which it
    is not busy.
    """
    waited = 0.0
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            while thread.is_alive() and (limit_s is None or waited < limit_s):
                thread.join(0.1)
                waited = 0.0 if is_busy() else waited + 0.1


def end_despite_threads(exit_code):
    """Has the process end with this code, and with a note, if threads that do not end keep it waiting for ENDING_S."""
    left = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    if left:
        watch = threading.Thread(target=_watch_end, args=(threading.get_ident(), exit_code, left))
        watch.daemon = True
        watch.start()


def _watch_end(thread, exit_code, left):
    waited = 0.0
    while waited < ENDING_S:
        time.sleep(0.1)
        waited = waited + 0.1 if _is_waiting(vars(sys)["_current_frames"]().get(thread)) else 0.0
    names = ", ".join(each.name for each in left if each.is_alive())
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        os.write(2, "\nthreads left running: {}\n".format(names).encode("utf-8", "replace"))
    os._exit(exit_code)


def _is_waiting(frame):
    while frame is not None and frame.f_code.co_name not in _WAITING:
        frame = frame.f_back
    return frame is not None
