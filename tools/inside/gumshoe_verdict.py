"""Runs tests for a verdict and reports each outcome to the supervisor. PYTEST_DONT_REWRITE

Standard library only, Python 3.6 to 3.14. As a program, `gumshoe_verdict.py RUNNER argument...`, it runs pytest,
unittest or a script with a runner of its own (Django's `runtests.py`, sympy's `bin/test`) in this process, and loads
the runner before anything of the repository can be found. As a pytest plugin it reports from within a command of the
repository's own.

The variable GUMSHOE_VERDICT, which is removed at once, names a socket: `fd:NUMBER` or a path. With `load:NUMBER` the
runner is loaded ahead: that is announced by a line, `loaded`, and the rest waits for the supervisor's word. A process
that had to load anything from the repository for this, which the patch may be about to change, exits without saying so.

Reports go over the socket as lines of a keyed digest and a JSON list:

    ["start", id], ["result", id, outcome, message, title], ["broken", id, message], ["tampered", text], ["end", code],
    ["final"]

The last one is sent when the interpreter itself ends, by the main thread and with no caller, so that a process that
exits through `os._exit` does not send it. What code in this process could still do, if it were written against this
very file: find the key among the interpreter's objects or in its memory, report whatever it likes, and exit.
"""

import _thread
import atexit
import gc
import hashlib
import importlib
import json
import os
import runpy
import socket
import sys
import traceback

VARIABLE = "GUMSHOE_VERDICT"


def load_runner(runner, tests=()):
    """Loads what runs the tests and what is needed to report; `tests` are the test files to prepare for."""
    gc.disable()  # Modules are not garbage; looking for garbage among them takes a tenth of the time.
    try:
        if "pytest" in runner:
            from gumshoe_verdict_pytest import load

            return load(tests)
        import gumshoe_verdict_unittest

        return gumshoe_verdict_unittest
    finally:
        gc.enable()


def load_ahead(runner):
    """Loads the runner before the supervisor gives the word; only the paths of test files are received first. Exits if
    any module came from the repository.
    """
    from gumshoe_project import real_paths

    tests = json.loads(receive_line(int(os.environ[VARIABLE].partition(":")[2])))
    loaded = load_runner(runner, tests)
    root = os.path.realpath(os.getcwd()) + os.sep
    real_path = real_paths()
    for module in list(sys.modules.values()):
        facts = getattr(module, "__dict__", {})
        for place in [facts.get("__file__") or "", *(facts.get("__path__") or ())]:
            if real_path(str(place)).startswith(root):
                sys.exit(1)
    freeze()
    return loaded


def connect():
    """(function that sends a report, options) for the supervisor that started this process; None without one.

    Only the returned function knows the key. Reports from forked copies of this process are dropped.
    """
    where = os.environ.pop(VARIABLE, None)
    if where is None:
        return None
    how, _, number = where.partition(":")
    if how in ("fd", "load"):
        line = socket.socket(fileno=int(number))
        line.set_inheritable(False)
    else:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(where)
        except OSError:  # Another process of the command connected first, and reports.
            return None
    if how == "load":
        line.sendall(b"loaded\n")
    greeting = receive_line(line.fileno())
    if not greeting:
        return None
    importlib.invalidate_caches()
    options = json.loads(greeting)
    send = sender(line, bytes.fromhex(options.pop("key")))
    register_final(send)
    return send, options


def receive_line(descriptor):
    """The one line that is on its way; empty if the other side has closed."""
    text = b""
    while not text.endswith(b"\n"):
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return ""
        text += piece
    return text.decode("ascii")


def sender(line, key, blake2b=hashlib.blake2b, dumps=json.dumps, getpid=os.getpid):
    """The function that sends a report."""
    number = [0]
    owner = getpid()
    write = line.sendall

    def send(*event):
        if getpid() == owner:
            payload = dumps(event).encode("ascii")
            digest = blake2b(payload, key=key, digest_size=16, salt=b"%d" % number[0]).hexdigest()
            number[0] += 1
            write(digest.encode("ascii") + b" " + payload + b"\n")

    return send


def register_final(send, caller=sys._getframe, thread=_thread.get_ident):
    """Has the interpreter send the last report when it ends; nothing else may hold or find the function for it."""
    main = thread()

    def final():
        try:
            caller(1)
        except ValueError:
            if thread() == main:
                send("final")

    atexit.register(final)
    freeze()


def freeze():
    """Removes all current objects, garbage too, from the interpreter's list of objects, where that is possible."""
    if hasattr(gc, "freeze"):
        gc.freeze()


def is_changed(options):
    """A function that tells whether the patch changed the file with a given name."""
    root = os.path.realpath(options["root"]) + os.sep
    changed = {os.path.normpath(root + path) for path in options["changed"]}
    known = {}

    def changed_file(name):
        if name not in known:
            known[name] = not name.startswith("<") and os.path.realpath(os.path.join(root, name)) in changed
        return known[name]

    return changed_file


def run_pytest(send, options, arguments, watch, insert_folder):
    """Runs as `python -m pytest`, or as `pytest`, which leaves the current folder out of the path."""
    import pytest
    from gumshoe_verdict_pytest import Reporter

    if insert_folder:
        sys.path.insert(0, os.getcwd())
    plugins = [Reporter(send, is_changed(options), watch, options["tests"], ends=True)]
    del send
    return int(pytest.main(with_options(arguments), plugins=plugins))


def with_options(arguments):
    """The arguments that pytest is given.

    The reports describe each failure. If many tests fail, printing tracebacks takes longer than the tests; those of
    files that cannot be imported are printed all the same.
    """
    return ["--tb=line", *arguments]


def run_unittest(send, options, arguments):
    """Runs as `python -m unittest`."""
    import unittest

    from gumshoe_verdict_unittest import report_unittest

    report_unittest(send, is_changed(options))
    sys.path.insert(0, os.getcwd())
    sys.argv = ["python -m unittest", *arguments]
    return ended(send, exit_code(lambda: unittest.main(module=None)))


def run_script(send, options, arguments):
    """Runs as `python script argument...`: unittest and sympy tests report; without any, the script is the test."""
    from gumshoe_verdict_unittest import describe, report_sympy, report_unittest, through_changed

    changed = is_changed(options)
    script = arguments[0]
    inner = []

    def report(*event):
        inner.append(None)
        send(*event)

    def run():
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as error:
            if not inner and through_changed(error.__traceback__, changed):
                raise RuntimeError("the code under test ended the script") from None
            raise

    report_unittest(report, changed)
    report_sympy(report)
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    sys.argv = list(arguments)
    message = ""
    try:
        code = exit_code(run)
    except Exception:
        code, message = 1, describe(sys.exc_info())
        traceback.print_exc()
    if not inner:
        send("start", script)
        send("result", script, "failed" if code else "passed", message, "")
    return ended(send, code)


def exit_code(work):
    """The exit code that Python would end with."""
    try:
        work()
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return int(error.code or 0) & 0xFF
        sys.stderr.write("{}\n".format(error.code))
        return 1
    return 0


def ended(send, code):
    """Reports the runner's exit code and returns it."""
    send("end", code)
    return code


def main():
    """Runs the tests for a verdict, and reports to the supervisor alone."""
    folder = os.path.dirname(os.path.abspath(__file__))
    runner, arguments = sys.argv[1], sys.argv[2:]
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    sys.path.append(folder)
    ahead = load_ahead(runner) if os.environ.get(VARIABLE, "").startswith("load:") else None
    connection = connect()
    if connection is None:
        sys.exit("gumshoe: no supervisor to report to")
    send, options = connection
    loaded = ahead or load_runner(runner)
    if runner in ("pytest", "bare-pytest"):
        code = run_pytest(send, options, arguments, loaded, insert_folder=runner == "pytest")
    elif runner == "unittest":
        code = run_unittest(send, options, arguments)
    else:
        code = run_script(send, options, arguments)
    sys.exit(code)


def pytest_configure(config):
    """Within one of the repository's own commands: registers the reporter, if this process is the first to connect."""
    connected = connect()
    if connected is not None:
        from gumshoe_verdict_pytest import RUNNER, Reporter, RunnerState

        send, options = connected
        reporter = Reporter(send, is_changed(options), (RunnerState(RUNNER), {}), options["tests"], ends=True)
        config.pluginmanager.register(reporter, "gumshoe_verdict_reporter")


if __name__ == "__main__":
    main()
