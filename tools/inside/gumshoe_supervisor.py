"""Runs the tests for a verdict and hands on what they report. It never loads the code under test.

Standard library only, Python 3.6 and later. Reads one JSON request from standard input:

    {"argv": [...], "support": folder, "timeout_s": seconds, "output": bytes to keep, "options": what the tests' process
     is told, "direct": whether argv is a `gumshoe_verdict` process, "folder": a folder to make for the answer}

and prints one JSON line, `{"report": path, "sha256": hex}`. The file at that path holds

    {"exit_code": number or null, "timed_out": bool, "duration_s": seconds, "output": text,
     "events": [[kind, ...], ...], "problems": [text], "left": [command lines]}

The tests run in a process of their own, which reports over a socket that it holds from before it loads any code under
test. Every report carries a keyed digest and its number; a report that does not fit is a problem. When the process
ends, everything that it started is killed before the answer is written, so that nothing is left that could change it.
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

CHUNK = 1 << 16
EVENT_BYTES = 32 << 20
LINE_BYTES = 1 << 16
KILL_S = 10.0
LEFT_SHOWN = 5
PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER, PR_GET_DUMPABLE = 4, 36, 3
VARIABLE = "GUMSHOE_VERDICT"


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


class Output:
    """The first and the last bytes of what the tests print."""

    def __init__(self, limit):
        self.half = limit // 2
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = False

    def write(self, data):
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > self.half:
            self.dropped = True
            del self.tail[: len(self.tail) - self.half]

    def text(self):
        middle = b"\n[...]\n" if self.dropped else b""
        return (bytes(self.head) + middle + bytes(self.tail)).decode("utf-8", "replace")


class Reports:
    """What the tests' process has reported, as far as it is authentic."""

    def __init__(self, key):
        self.key = key
        self.events = []
        self.problems = []
        self.size = 0
        self._buffer = b""

    def write(self, data):
        self.size += len(data)
        if self.size > EVENT_BYTES:
            self.reject("the tests report more than {} MB".format(EVENT_BYTES >> 20))
            return
        lines = (self._buffer + data).split(b"\n")
        self._buffer = lines.pop()
        for line in lines:
            self._take(line)
        if len(self._buffer) > LINE_BYTES:
            self.reject("a report is too long")

    def end(self):
        if self._buffer:
            self.reject("a report was cut off")

    def reject(self, why):
        if why not in self.problems:
            self.problems.append(why)
        self._buffer = b""

    def _take(self, line):
        digest, _, payload = line.partition(b" ")
        if digest != sign(self.key, len(self.events), payload):
            self.reject("something other than the test harness wrote a report")
            return
        try:
            event = json.loads(payload.decode("ascii"))
        except (ValueError, RecursionError):
            self.reject("a report cannot be read")
            return
        self.events.append(event)


def sign(key, number, payload):
    """The digest of one report."""
    return hashlib.blake2b(payload, key=key, digest_size=16, salt=b"%d" % number).hexdigest().encode("ascii")


class Tests:
    """The process that runs the tests, and what comes from it."""

    def __init__(self, request):
        self.request = request
        self.key = os.urandom(32)
        self.output = Output(request["output"])
        self.reports = Reports(self.key)
        self.started = time.time()
        self.exit_code = None
        self.timed_out = False
        self.listener = self.line = None
        self.path = os.path.join(request["folder"], "socket")
        theirs = None
        if request["direct"]:
            self.line, theirs = socket.socketpair()
        else:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
            self.listener.listen(1)
        self.out, out_end = os.pipe()
        self.wake, wake_end = os.pipe()
        for descriptor in (self.wake, wake_end):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wake_end)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self.pid = os.fork()
        if self.pid == 0:
            self._become(theirs, out_end)
        os.close(out_end)
        if theirs is not None:
            theirs.close()
            self._greet()

    def _become(self, theirs, out_end):
        """Never returns: this process becomes the tests."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (out_end, 1), (out_end, 2)):
                os.dup2(source, target)
            environment = dict(os.environ)
            environment.setdefault("PYTHONHASHSEED", "0")
            if theirs is None:
                environment[VARIABLE] = self.path
                options = [environment.get("PYTEST_ADDOPTS", ""), "-p gumshoe_verdict"]
                environment["PYTEST_ADDOPTS"] = " ".join(options).strip()
                paths = [self.request["support"], environment.get("PYTHONPATH")]
                environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
            else:
                os.set_inheritable(theirs.fileno(), True)
                environment[VARIABLE] = "fd:{}".format(theirs.fileno())
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
        greeting = dict(self.request["options"], key=self.key.hex())
        try:
            self.line.sendall(json.dumps(greeting).encode("ascii") + b"\n")
        except OSError:
            self.reports.reject("the test harness did not start")

    def follow(self):
        """Takes in what is printed and reported until the process ends or its time is up."""
        deadline = self.started + self.request["timeout_s"]
        while self.exit_code is None:
            left = deadline - time.time()
            if left <= 0:
                self.timed_out = True
                return
            self._read(select.select(self._sources(), [], [], left)[0])
            self._reap()

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
        if self.wake in ready:
            os.read(self.wake, CHUNK)
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

    def _reap(self):
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
    """The living processes below one, zombies left out."""
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
    """What a process was started as, shortened."""
    try:
        with open("/proc/{}/cmdline".format(pid), "rb") as stream:
            return stream.read(200).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def main():
    protected = protect()
    request = json.loads(sys.stdin.read())
    os.mkdir(request["folder"], 0o700)
    tests = Tests(request)
    tests.follow()
    answer = tests.finish()
    answer["protected"] = protected
    data = json.dumps(answer).encode("ascii")
    path = os.path.join(request["folder"], "report.json")
    with open(path, "xb") as file:
        file.write(data)
    print(json.dumps({"report": path, "sha256": hashlib.sha256(data).hexdigest()}))


if __name__ == "__main__":
    main()
