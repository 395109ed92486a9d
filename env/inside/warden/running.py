"""Running one program to its end, as the warden's `run` does, and keeping the first and last bytes of an output."""

import base64
import errno
import os
import time

from .system import CHUNK, CLOSED, set_nonblocking, wait_readable

MARGIN = 1 << 20


class BoundedBuffer:
    """Keeps the first and the last bytes of a stream; what lies between is counted and dropped.

    At most `cap` bytes are kept, half of them from either end.
    """

    def __init__(self, cap):
        self.half = max(1, cap // 2)
        self.head = bytearray()
        self.tail = bytearray()
        self.total = 0

    def write(self, data):
        """Takes in more bytes; those in the middle are dropped once there are too many."""
        self.total += len(data)
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if data:
            self.tail += data
            if len(self.tail) > self.half + MARGIN:
                del self.tail[: -self.half]

    def dump(self):
        """The stream as a reply carries it: `head`, `tail` (base64) and the number of bytes `cut` between them."""
        tail = bytes(self.tail[-self.half :])
        return {
            "head": base64.b64encode(bytes(self.head)).decode("ascii"),
            "tail": base64.b64encode(tail).decode("ascii"),
            "cut": self.total - len(self.head) - len(tail),
        }


class Scanner:
    """Passes a stream on to a buffer up to a marker, which may be split over several chunks."""

    def __init__(self, buffer, marker=None):
        self.buffer = buffer
        self.marker = marker
        self.found = False
        self.carry = b""

    def feed(self, data):
        """Takes one chunk; returns what followed the marker (empty until it is found)."""
        if not self.marker:
            self.buffer.write(data)
            return b""
        joined = self.carry + data
        place = joined.find(self.marker)
        if place >= 0:
            self.found = True
            self.carry = b""
            self.buffer.write(joined[:place])
            return joined[place + len(self.marker) :]
        keep = min(len(joined), len(self.marker) - 1)
        self.buffer.write(joined[: len(joined) - keep])
        self.carry = joined[len(joined) - keep :]
        return b""

    def flush(self):
        """Passes on what was held back as the possible beginning of a marker."""
        self.buffer.write(self.carry)
        self.carry = b""


class ProgramRun:
    """Feeds a program, records what it prints and enforces its time.

    A program may close its output, leave its input unread or put itself in the background: the run ends when the
    program does, not when its streams do.

    `start(stdin, stdout)` starts the program and returns its Job.
    """

    def __init__(self, start, data, cap):
        self.output = BoundedBuffer(cap)
        self.started = time.monotonic()
        self._data = memoryview(data or b"")
        self._out, out_end = os.pipe()
        set_nonblocking(self._out)
        if data is None:
            stdin, self._feed = os.open(os.devnull, os.O_RDONLY), CLOSED
        else:
            stdin, self._feed = os.pipe()
            set_nonblocking(self._feed)
        try:
            self.job = start(stdin, out_end)
        except BaseException:
            self._close("_feed")
            self._close("_out")
            raise
        finally:
            os.close(out_end)
            os.close(stdin)

    def finish(self, timeout, host, watch=None):
        """Waits for the end and returns the reply. Raises what `host.check_cancelled()` does when `host.source` is
        readable: a host that sends something during an exchange does not wait for its answer.
        """
        try:
            timed_out = self._wait(timeout, host, watch)
        finally:
            self.job.close()
            self._record()
            self._close("_feed")
            self._close("_out")
        return {
            "exit_code": None if timed_out else self.job.exit_code,
            "timed_out": timed_out,
            "duration_s": time.monotonic() - self.started,
            "output": self.output.dump(),
        }

    def _wait(self, timeout, host, watch):
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.job.over:
            readers = [descriptor for descriptor in (self.job.status, self._out, host.source) if descriptor >= 0]
            ready = wait_readable(readers, deadline, [self._feed] if self._feed >= 0 else [], watch)
            if host.source in ready:
                host.check_cancelled()
            if self._out in ready:
                self._record(once=True)
            if self._feed in ready:
                self._hand_over()
            if self.job.status in ready:
                self.job.read_status()
            elif deadline is not None and time.monotonic() >= deadline:
                return True
        return False

    def _record(self, once=False):
        """Takes in what the program has printed: one piece, or all there is."""
        while self._out >= 0:
            try:
                data = os.read(self._out, CHUNK)
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    raise
                return
            if not data:
                self._close("_out")
                return
            self.output.write(data)
            if once:
                return

    def _hand_over(self):
        """Gives the program the next piece of its input; a program that closed it wants no more."""
        try:
            self._data = self._data[os.write(self._feed, self._data[:CHUNK]) :]
        except BrokenPipeError:
            self._data = self._data[:0]
        if not self._data:
            self._close("_feed")

    def _close(self, name):
        descriptor = getattr(self, name)
        if descriptor >= 0:
            os.close(descriptor)
            setattr(self, name, CLOSED)
