"""How the host talks to the warden.

The warden reads one JSON request a line from its terminal, such as

    {"nonce": "5f0c...", "op": "read", "path": "shop.py", "inside": true}

where the operation is a method of `Warden` with these arguments, and answers each with

    nonce + one line of ASCII JSON + nonce + newline

where the nonce is the request's own. Whatever else appears on the terminal is noise that the host drops. Bytes travel
as base64. An answer is `{"ok": ...}`, `{"errno": number, "text": ..., "path": ...}` for what the operating system
refused, `{"stopped": text}` when a limit of the whole sandbox was passed and all its programs were killed, or when the
host sent something before it had the answer, `{"invalid": text}` for a wrong pattern, or `{"broken": traceback}` for an
error of our own.
"""

import errno
import json
import os
import re
import signal
import traceback

from . import system
from .disk import DiskFull
from .system import CHUNK, Cancelled, HostGone
from .warden import Warden


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


def answer_to(warden, request):
    """Carries out one request, a call of a public method of Warden; the reply without the nonce."""
    operation = request.pop("op")
    if operation.startswith("_") or not hasattr(Warden, operation):
        return {"broken": "no operation {}".format(operation)}
    try:
        return {"ok": getattr(warden, operation)(**request)}
    except HostGone:
        raise
    except Cancelled:
        return {"stopped": "the host did not wait for the answer"}
    except DiskFull as error:
        warden._stop_all()  # Private, since the host may ask for whatever is public.
        return {"stopped": str(error)}
    except OSError as error:
        return {"errno": error.errno or errno.EIO, "text": error.strerror or str(error), "path": error.filename}
    except re.error as error:
        return {"invalid": str(error)}
    except UnicodeEncodeError:
        return {"errno": errno.ENOENT, "text": "the path cannot be written in the file system's encoding", "path": None}
    except Exception:
        return {"broken": traceback.format_exc()}


def serve(source, sink, files):
    """Answers requests until the host shuts it down or goes away, then kills all there is.

    `files` are those of this package, by their paths.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")
    adopts_orphans = system.adopt_orphans()
    system.hide_memory()
    system.keep_for_itself(source)
    terminal = Terminal(source, sink)
    warden = Warden(terminal, files, adopts_orphans)
    try:
        while True:
            request = terminal.read_request()
            if request is None:
                break
            nonce = request.pop("nonce")
            leaving = request["op"] == "shutdown"
            terminal.answer(nonce, answer_to(warden, request))
            if leaving:
                break
    except (HostGone, OSError):
        pass
    finally:
        warden.shutdown()
