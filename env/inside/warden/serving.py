"""How the host talks to the warden.

The warden reads one JSON request a line from its terminal and answers each with

    nonce + one line of ASCII JSON + nonce + newline

where the nonce is the request's own. Whatever else appears on the terminal is noise that the host drops. Bytes travel
as base64. An answer is `{"ok": ...}`, `{"errno": number, "text": ..., "path": ...}` for what the operating system
refused, `{"stopped": text}` when a limit of the whole sandbox was passed and all its programs were killed,
`{"invalid": text}` for a wrong pattern, or `{"broken": traceback}` for an error of our own.
"""

import errno
import os
import re
import signal
import traceback

from . import system
from .disk import DiskFull
from .processes import Cancelled, HostGone
from .terminal import Terminal
from .warden import Warden

OPERATIONS = {name for name in vars(Warden) if not name.startswith("_")}


def answer_to(warden, request):
    """Carries out one request; the reply without the nonce."""
    operation = request.pop("op")
    if operation not in OPERATIONS:
        return {"broken": "no operation {}".format(operation)}
    try:
        return {"ok": getattr(warden, operation)(**request)}
    except HostGone:
        raise
    except Cancelled:
        return {"stopped": "the host did not wait for the answer"}
    except DiskFull as error:
        warden.stop_all()
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
        warden.end()
