"""Bounded buffers: the first and last bytes of an output, and a search for a marker in a stream."""

import base64

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
