"""Checkpoints: waiting processes to which a session can return.

`make` forks; the parent waits as the checkpoint while the child runs on as the program. `restore` ends the running
process and forks the waiting one again, so that a session can return to a checkpoint any number of times, and from any
other. What is restored is the memory of the process. NOT covered: files and their offsets, sockets, child processes,
other threads (a checkpoint is refused while there are any), the clock, and the process id, which changes.

A checkpoint that is *held* outlives the program: when that ends, a copy of the checkpoint waits for requests in its
place.
"""

import contextlib
import json
import mmap
import os
import select
import signal
import socket

from ..programs.program import flush_output
from .requests import CommandError

RESTORED = 213
"""Exit code of a process that gave way to a checkpoint."""

_read, _fork, _exit, _getpid = os.read, os.fork, os._exit, os.getpid


PENDING = 8000
"""Where the registry holds the nonce of a request that has no answer yet; process ids come before it."""


class Checkpoints:
    """Names of waiting processes. A waiting process holds the state; the running one is among its descendants.

    Args:
        gone: is called in a held checkpoint with the nonce of a request that will get no answer, and the exit code,
            when the program has ended without a reply.
    """

    def __init__(self, gone):
        self.addresses = {}
        self._gone = gone
        self._registry = mmap.mmap(-1, 8192)
        self._root = _getpid()
        self._family = "\0gumshoe-{}-{}-".format(_getpid(), os.urandom(16).hex())
        self.forking = False

    def note(self, nonce):
        """Notes the nonce of the request being carried out; None when it has been answered."""
        self._registry[PENDING : PENDING + 32] = (nonce or "").encode("ascii")[:32].ljust(32, b"\0")

    def make(self, name, hold=False):
        """Forks. Returns None in the process that runs on, and the restoring message in each later copy; that message
        is empty in the copy that waits in place of a program that has ended.

        Raises CommandError where the system has no sockets for it.
        """
        # A copy of an earlier checkpoint, which goes on in place of an ended program, must find the later ones, too.
        address = self._family + (name if hold else os.urandom(16).hex())
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(address)
            listener.listen(1)
        except OSError as error:
            listener.close()
            raise CommandError("no checkpoints on this system: {}".format(error)) from None
        self.addresses[name] = address
        message, children = None, []
        # Before the fork: afterwards the program may run on and end before this process gets to it.
        self._register(_getpid())
        self.forking = True
        while True:
            child = _fork()
            if child == 0:
                self.forking = False
                listener.close()
                if message:
                    self.addresses = message["addresses"]
                return message
            children.append(child)
            message = self._wait(children, listener, hold)

    def restore(self, name, message):
        """Wakes the checkpoint and ends this process. Raises CommandError."""
        data = json.dumps(dict(message, addresses=self.addresses)).encode("ascii")
        flush_output()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.connect(self.addresses.get(name, self._family + name))
            except (OSError, ValueError):  # the latter for a name that no address can hold
                if self.addresses.pop(name, None):
                    raise CommandError("checkpoint {!r} is gone".format(name)) from None
                known = ", ".join(sorted(self.addresses)) or "none"
                raise CommandError("no checkpoint {!r}; there are: {}".format(name, known)) from None
            connection.sendall(data)
        _exit(RESTORED)

    def _wait(self, children, listener, hold):
        """Waits in the checkpoint. Returns what a restoring process sent. When the program ends, this process exits the
        same way, unless the checkpoint is held: then it returns nothing.
        """
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGCHLD)}
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        previous = signal.set_wakeup_fd(waker)
        message = None
        while message is None:
            code = self._look_after(children)
            if code is not None:
                message = self._outlive(code) if hold else self._end(code)
                continue
            ready, _, _ = select.select([listener, woken], [], [])
            if listener in ready:
                message = _read_message(listener)
            else:
                _read(woken, 4096)
        signal.set_wakeup_fd(previous)
        for number, handler in handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        os.close(woken)
        os.close(waker)
        return message

    def _look_after(self, children):
        """Reaps children that have ended. Returns the exit code of one whose end is that of the program."""
        for child in list(children):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid == 0:
                continue
            children.remove(child)
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            if code != RESTORED:
                return code
        return None

    def _outlive(self, code):
        nonce = bytes(self._registry[PENDING : PENDING + 32]).rstrip(b"\0").decode("ascii")
        if nonce:
            self.note(None)
            self._gone(nonce, code)
        return {}

    def _end(self, code):
        if _getpid() == self._root:
            self._end_others()
        _exit(code)

    def _register(self, pid):
        """Notes a waiting process where all of the family can read it."""
        known = self._registered()
        if pid not in known and len(known) < 1000:
            self._registry[len(known) * 8 : len(known) * 8 + 8] = b"%08d" % pid

    def _registered(self):
        pieces = bytes(self._registry[:PENDING]).rstrip(b"\0")
        return [int(pieces[start : start + 8]) for start in range(0, len(pieces), 8)]

    def _end_others(self):
        for pid in self._registered():
            if pid != self._root:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def _read_message(listener):
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as stream:
        return json.loads(stream.read().decode("ascii"))
