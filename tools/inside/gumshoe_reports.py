"""What the tests' process of a verdict prints and reports, read within limits.

Standard library only, Python 3.6 and later.
"""

import hashlib
import json

EVENT_BYTES = 32 << 20
LINE_BYTES = 1 << 16


class BoundedOutput:
    """The first and the last bytes of what the tests print."""

    def __init__(self, limit):
        self.half = limit // 2
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = False

    def write(self, data):
        """Takes in more bytes; those in the middle are dropped once there are too many."""
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > self.half:
            self.dropped = True
            del self.tail[: len(self.tail) - self.half]

    def text(self):
        """Everything that was kept, with undecodable bytes replaced."""
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
        """Takes in more bytes, and each report that is complete."""
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
        """No more bytes will come: whatever is left was cut off."""
        if self._buffer:
            self.reject("a report was cut off")

    def reject(self, why):
        """Notes a problem once and drops what has not been read."""
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
