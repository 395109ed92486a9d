"""The warden's line to the host: one JSON request a line in, one answer out."""

import json
import os

from .processes import CHUNK, Cancelled, HostGone


class Terminal:
    """The line to the host."""

    def __init__(self, source, sink):
        self.source = source
        self.sink = sink
        self._buffer = bytearray()

    def read_request(self):
        """The next request, or None when the host has gone."""
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return json.loads(line.decode("ascii"))
            searched = len(self._buffer)
            if not self._take_in():
                return None

    def check_cancelled(self):
        """To be called when the host sends something in the middle of an exchange. Raises HostGone or Cancelled."""
        if not self._take_in():
            raise HostGone
        raise Cancelled

    def _take_in(self):
        """Reads what is there; false when the host has gone."""
        try:
            data = os.read(self.source, CHUNK)
        except OSError:
            return False
        self._buffer += data
        return bool(data)

    def answer(self, nonce, reply):
        """Writes a reply as JSON between two copies of the nonce."""
        text = nonce + json.dumps(reply) + nonce + "\n"
        view = memoryview(text.encode("ascii"))
        while view:
            view = view[os.write(self.sink, view) :]
