"""JSON lines: over a socket that nothing else writes to, and appended to a file."""

import contextlib
import fcntl
import json
import os

_HIGH_FD = 400

# A program under test may replace these; the debugger keeps the real ones.
_open, _close, _read, _write, _exit = os.open, os.close, os.read, os.write, os._exit
_dumps, _loads = json.dumps, json.loads


def append_lines(path, objects):
    """Appends objects to a file, each as a line of JSON; what is written survives when the process is killed. Returns
    how many bytes that were.
    """
    text = "".join(_dumps(each, ensure_ascii=False) + "\n" for each in objects)
    data = left = text.encode("utf-8", "replace")  # half a surrogate pair: "?"
    descriptor = _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        while left:
            left = left[_write(descriptor, left) :]
    finally:
        _close(descriptor)
    return len(data)


class JsonChannel:
    """JSON lines over a socket. A closed socket ends the process: nobody is left to talk to.

    Each request carries a `nonce` that cannot be guessed; what is sent repeats the nonce of the last request. A program
    that finds the socket among its descriptors, or inherits it, lacks the nonce, and what it writes is dropped.
    """

    def __init__(self, descriptor):
        self.descriptor = _move_high(descriptor)
        self.nonce = None
        self._buffer = b""

    def send(self, message):
        """Sends one message."""
        if self.nonce is not None:
            message = dict(message, nonce=self.nonce)
        data = _dumps(message).encode("ascii") + b"\n"
        try:
            while data:
                data = data[_write(self.descriptor, data) :]
        except OSError:
            _exit(1)

    def receive(self):
        """Waits for the next message."""
        while b"\n" not in self._buffer:
            try:
                data = _read(self.descriptor, 65536)
            except OSError:
                data = b""
            if not data:
                _exit(1)
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        message = _loads(line.decode("utf-8"))
        self.nonce = message.pop("nonce", None)
        return message

    def close(self):
        """Closes the socket."""
        with contextlib.suppress(OSError):
            os.close(self.descriptor)


def _move_high(descriptor):
    """Moves the socket where programs that close all low descriptors leave it, and keeps it from their children."""
    os.set_inheritable(descriptor, False)
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH_FD)
    except (OSError, ValueError):
        return descriptor
    os.close(descriptor)
    return moved
