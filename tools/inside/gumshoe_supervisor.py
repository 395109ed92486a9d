"""Runs the tests for a verdict and passes on what they report. It never loads the code under test.

Standard library only, Python 3.6 and later. It gets two requests over the control channel of its session (see
`gumshoe_channel`). The first one comes before the patch is there:

    {"argv": [...], "support": folder, "output": bytes to keep, "root": folder of the repository,
     "environment": variables of the tests, "direct": whether argv is a `gumshoe_verdict` process,
     "tests": paths of test files to get ready, "folder": a folder to make for the answer}

The tests' process is started, loads the test runner from outside the repository and waits; the answer is `{"loaded":
bool}`. If loading fails, the process is started afresh later. The second request has the tests run:

    {"changed": paths that the patch has changed, "tests": paths of the test files that decide, "timeout_s": seconds}

The answer is `{"report": path, "sha256": hex}`, or `{"failed": text}`. The file at that path holds

    {"exit_code": number or null, "timed_out": bool, "duration_s": seconds, "output": text,
     "events": [[kind, ...], ...], "problems": [text], "left": [command lines]}

The tests run in a process of their own, which reports over a socket that it has held since before it loaded any code
under test. Every report carries a keyed digest and its number; a report that does not match is a problem. When the
process ends, everything that it started is killed before the answer is written, so that nothing is left that could
change the answer, and the test files must be unchanged.
This process cannot be traced, and only it holds the way to the host.
"""

import hashlib
import json
import os
import select
import signal
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from gumshoe_channel import JsonChannel  # noqa: E402 - the interpreter is isolated and does not look here by itself
from gumshoe_project import test_file_stamps  # noqa: E402
from gumshoe_reports import LINE_BYTES, BoundedOutput, Reports  # noqa: E402

del sys.path[0]  # What is written there later must not be imported.
CHUNK = 1 << 16
KILL_S = 10.0
LOAD_S = 60.0
LEFT_SHOWN = 5
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_GET_DUMPABLE = 4, 36, 3
VARIABLE = "GUMSHOE_VERDICT"
LOADED = b"loaded\n"


def protect():
    """Forbids tracing this process, and makes it the parent of every orphan below it."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return False
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0


class Tests:
    """The process that runs the tests, and what comes from it."""

    def __init__(self, request):
        self.request = request
        self.exit_code = None
        self.timed_out = False
        self.loaded = False
        self.pid = self.listener = self.line = self.out = None
        self.path = os.path.join(request["folder"], "socket")
        self.wake, wake_end = os.pipe()
        for descriptor in (self.wake, wake_end):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake_end)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def load(self):
        """Starts the process and waits until it has loaded the test runner; if it does not, it is ended again."""
        if not self.request["direct"]:
            return
        self._start("load")
        tests = json.dumps(self.request["tests"])
        self._tell(tests if len(tests) < LINE_BYTES else "[]")  # A longer one might block until it is read.
        deadline = time.time() + LOAD_S
        said = b""
        while said != LOADED and LOADED.startswith(said):
            ready = select.select(self._sources(), [], [], max(0.0, deadline - time.time()))[0]
            said += (self.line.recv(len(LOADED) - len(said)) or b" ") if self.line in ready else b""
            self._read([source for source in ready if source is not self.line])
            if not ready or self.exit_code is not None:
                break
        self.loaded = said == LOADED and self.exit_code is None
        if not self.loaded:
            kill_all()

    def run(self, order):
        """Has the tests run until they end or their time is up."""
        self.originals = test_file_stamps(self.request["root"])
        self.started = time.time()
        if not self.loaded:
            self._start("fd")
        greeting = {"root": self.request["root"], "key": self.key.hex()}
        greeting.update(changed=order["changed"], tests=order["tests"])
        self.greeting = json.dumps(greeting)
        if self.line is not None:
            self._greet()
        deadline = self.started + order["timeout_s"]
        while self.exit_code is None:
            left = deadline - time.time()
            if left <= 0:
                self.timed_out = True
                return
            self._read(select.select(self._sources(), [], [], left)[0])

    def _start(self, how):
        """Starts the process. `how` says what it first does with the socket that it inherits."""
        self.line = self.out = None
        self.key = os.urandom(32)
        self.output = BoundedOutput(self.request["output"])
        self.reports = Reports(self.key)
        self.exit_code = theirs = None
        if self.request["direct"]:
            self.line, theirs = socket.socketpair()
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(1)
        self.out, out_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._become(theirs, how, out_end)
        os.close(out_end)
        if theirs is not None:
            theirs.close()

    def _become(self, theirs, how, out_end):
        """Never returns: this process becomes the tests' process."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (out_end, 1), (out_end, 2)):
                os.dup2(source, target)
            os.chdir(self.request["root"])
            environment = dict(self.request["environment"])
            environment.setdefault("PYTHONHASHSEED", "0")
            if theirs is None:
                environment[VARIABLE] = self.path
                options = [environment.get("PYTEST_ADDOPTS", ""), "-p gumshoe_verdict"]
                environment["PYTEST_ADDOPTS"] = " ".join(options).strip()
                paths = [self.request["support"], environment.get("PYTHONPATH")]
                environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
            else:
                os.set_inheritable(theirs.fileno(), True)
                environment[VARIABLE] = "{}:{}".format(how, theirs.fileno())
            argv = self.request["argv"]
            try:
                os.execvpe(argv[0], argv, environment)
            except (FileNotFoundError, NotADirectoryError):
                os.write(2, "{}: command not found\n".format(argv[0]).encode("utf-8", "replace"))
                os._exit(127)
            except OSError as error:
                os.write(2, "cannot start: {}\n".format(error).encode("utf-8", "replace"))
        finally:
            os._exit(126)

    def _greet(self):
        """Tells the other side its key and options. Only the first to connect ever hears them."""
        if not self._tell(self.greeting):
            self.reports.reject("the test harness did not start")

    def _tell(self, text):
        """Sends one line; returns whether the other side is there."""
        try:
            self.line.sendall(text.encode("ascii") + b"\n")
        except OSError:
            return False
        return True

    def finish(self):
        """Kills everything that is left, takes in what is still on its way, and returns the answer."""
        left = [command_line(pid) for pid in sorted(descendants(os.getpid()) - {self.pid})]
        if not kill_all():
            self.reports.reject("processes that the tests started cannot be ended")
        while True:
            ready = select.select(self._sources()[1:], [], [], 0)[0]
            if not ready:
                break
            self._read(ready)
        self.reports.end()
        now = test_file_stamps(self.request["root"])
        changed = sorted(path for path, stamp in self.originals.items() if now.get(path) != stamp)
        if changed:
            text = "test files were changed while the tests ran: " + ", ".join(changed[:LEFT_SHOWN])
            self.reports.events.insert(0, ["tampered", text])
        return {
            "exit_code": self.exit_code,
            "timed_out": self.timed_out,
            "duration_s": time.time() - self.started,
            "output": self.output.text(),
            "events": self.reports.events,
            "problems": self.reports.problems,
            "left": left[:LEFT_SHOWN],
        }

    def _sources(self):
        return [self.wake, *(source for source in (self.out, self.line, self.listener) if source is not None)]

    def _read(self, ready):
        self._note(ready)
        if self.out is not None and self.out in ready:
            data = os.read(self.out, CHUNK)
            self.output.write(data)
            if not data:
                os.close(self.out)
                self.out = None
        if self.listener is not None and self.listener in ready:
            self.line, _ = self.listener.accept()
            self.listener.close()
            self.listener = None
            os.unlink(self.path)
            self._greet()
        elif self.line is not None and self.line in ready:
            try:
                data = self.line.recv(CHUNK)
            except OSError:
                data = b""
            if data:
                self.reports.write(data)
            else:
                self.line.close()
                self.line = None

    def _note(self, ready):
        """Takes in which processes have ended."""
        if self.wake in ready:
            os.read(self.wake, CHUNK)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.pid:
                self.exit_code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def descendants(ancestor):
    """The live processes below one, without zombies."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/{}/stat".format(name), "rb") as stream:
                    state, parent = stream.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found, waiting = set(), [ancestor]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def kill_all():
    """Kills every descendant; False where some cannot be killed in time."""
    deadline = time.time() + KILL_S
    while True:
        alive = descendants(os.getpid())
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in alive:
                try:
                    os.kill(pid, number)
                except OSError:
                    continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return True
        if not alive:
            return True
        if time.time() > deadline:
            return False
        time.sleep(0.001)


def command_line(pid):
    """The command line that a process was started with, shortened."""
    try:
        with open("/proc/{}/cmdline".format(pid), "rb") as stream:
            return stream.read(200).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def main():
    """Loads the tests, waits for the order to run them, and reports."""
    protected = protect()
    channel = JsonChannel(int(os.environ.pop("GUMSHOE_CONTROL")))
    try:
        request = channel.receive()
        os.mkdir(request["folder"], 0o700)
        tests = Tests(request)
        tests.load()
        channel.send({"loaded": tests.loaded})
        tests.run(channel.receive())
        answer = dict(tests.finish(), protected=protected)
        data = json.dumps(answer).encode("ascii")
        path = os.path.join(request["folder"], "report.json")
        with open(path, "xb") as file:
            file.write(data)
        channel.send({"report": path, "sha256": hashlib.sha256(data).hexdigest()})
    except Exception as error:
        channel.send({"failed": repr(error)})


if __name__ == "__main__":
    main()
