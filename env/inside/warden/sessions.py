"""Programs that the host talks to: each on a terminal, with a separate control channel of JSON lines.

A request carries a `nonce` of the warden's making, new for each request, and only a message that repeats the nonce of
the last request is an answer to it. Whatever else comes is dropped: answers to earlier requests, what is not a JSON
object within the bounds of `read_object`, and what a program writes that found the socket but has not read the request.
An answer with `"interim": true` announces the real one; see `Session.request`. One deadline holds for an exchange,
however much is dropped meanwhile.
"""

import binascii
import errno
import json
import os
import pty
import signal
import socket
import termios
import time
from contextlib import suppress

from .programs import BoundedBuffer
from .system import CHUNK, CLOSED, GRACE_S, send_signal, set_nonblocking, wait_ready

MAX_DEPTH = 40
MAX_DIGITS = 400
MAX_INTEGER = 1 << 63


def read_object(line, size):
    """The JSON object in a line of bytes; None where it is not one, or is out of bounds.

    At most `size` bytes, 40 levels, integers of 64 bits, finite numbers. Half of a surrogate pair, which is not a
    character, becomes a question mark.
    """
    if len(line) > size or not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line.decode("utf-8"), parse_int=_integer, parse_float=_number, parse_constant=_refuse)
        return _cleaned(found, MAX_DEPTH)
    except (ValueError, RecursionError):
        return None


def _cleaned(value, depth):
    if depth < 0:
        raise ValueError("too many levels")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_cleaned(each, depth - 1) for each in value]
    if isinstance(value, dict):
        return {_cleaned(key, 0): _cleaned(each, depth - 1) for key, each in value.items()}
    return value


def _integer(text):
    number = int(text) if len(text) < MAX_DIGITS else MAX_INTEGER
    if not -MAX_INTEGER <= number < MAX_INTEGER:
        raise ValueError("too large a number")
    return number


def _number(text):
    number = float(text)
    if number - number != 0.0:
        raise ValueError("not a finite number")
    return number


def _refuse(text):
    raise ValueError(text)


MESSAGE_BYTES = 8 << 20
MAX_INTERIM = 16
WRITE_TIMEOUT_S = 10.0


class Session:
    """A program on a terminal of its own, on which nothing is ever typed.

    What it prints stays in the terminal until it is read, so a program whose output nobody reads waits. `host` is
    what a wait listens to, as `ProgramRun.finish` does. `start(stdin, stdout, control)` starts the program and returns
    its Job.
    """

    def __init__(self, start, cap, host, watch=None):
        self.cap = cap
        self.watch = watch
        self.host = host
        self._received = bytearray()
        self._nonce = None
        self._master, slave = pty.openpty()
        set_nonblocking(self._master)
        _make_plain(slave)
        # Opened again, so that the warden's own writing does not wait and the program's still does.
        self._mark = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._control, theirs = socket.socketpair()
        try:
            self.job = start(slave, slave, theirs.fileno())
        except BaseException:
            self._close_terminal()
            raise
        finally:
            os.close(slave)
            theirs.close()

    @property
    def exit_code(self):
        """None while the program runs."""
        return self.job.exit_code if self.job.over else None

    def poll(self):
        """Takes in the news about the program without waiting."""
        while not self.job.over and wait_ready([self.job.status], time.monotonic()):
            self.job.read_status()
        return self.exit_code

    def wait_message(self, timeout):
        """Waits for an answer to the last request, the program's end or the timeout."""
        output = BoundedBuffer(self.cap)
        deadline = time.monotonic() + timeout
        interim = []
        timed_out = False
        while True:
            message = self._next_answer(interim)
            if message is not None:
                self._flush(output)
                break
            if self.job.over:
                break
            ready = wait_ready(self._sources(), deadline, watch=self.watch)
            if not ready or time.monotonic() > deadline:
                timed_out = True
                break
            self._take(ready, output)
        return {
            "output": output.dump(),
            "message": message,
            "interim": interim,
            "timed_out": timed_out,
            "exit_code": self.exit_code,
        }

    def request(self, message, timeout):
        """Sends a message and waits for the answer to it; `interim` of the reply holds what announced it."""
        if self._control.fileno() < 0:
            return self.wait_message(timeout)
        self._nonce = binascii.hexlify(os.urandom(16)).decode("ascii")
        line = json.dumps(dict(message, nonce=self._nonce)).encode("ascii") + b"\n"
        deadline = time.monotonic() + timeout
        try:
            self._control.settimeout(WRITE_TIMEOUT_S)
            self._control.sendall(line)
        except (BrokenPipeError, ConnectionResetError):
            return self.wait_message(min(timeout, GRACE_S))
        except socket.timeout:
            raise OSError(errno.ETIMEDOUT, "the program does not read its control channel") from None
        return self.wait_message(max(0.0, deadline - time.monotonic()))

    def interrupt(self):
        """Sends SIGINT to the process group in the foreground of the terminal."""
        if self.poll() is not None:
            return
        try:
            os.killpg(os.tcgetpgrp(self._master), signal.SIGINT)
        except OSError:
            if self.job.pid is not None:
                send_signal(self.job.pid, signal.SIGINT)

    def close(self):
        """Kills the program and all it started. Idempotent."""
        self.job.close()
        self._close_terminal()

    def _close_terminal(self):
        if self._master >= 0:
            os.close(self._master)
            os.close(self._mark)
            self._control.close()
            self._master = CLOSED

    def _sources(self):
        control = [] if self._control.fileno() < 0 else [self._control.fileno()]
        return [self._master, self.job.status, self.host.source, *control]

    def _take(self, ready, output):
        """Takes in what is ready. The program's end comes last: after it, all that is left is taken in."""
        if self.host.source in ready:
            self.host.check_cancelled()
        if self._control.fileno() in ready:
            self._receive()
        if self._master in ready:
            output.write(_read(self._master))
        if self.job.status in ready:
            self.job.read_status()
            if self.job.over:
                self._receive()
                self._flush(output)

    def _receive(self):
        """Reads what has arrived on the control channel, at most one message's size; closes it when the program has."""
        if self._control.fileno() < 0:
            return
        self._control.setblocking(False)
        try:
            while self._control.fileno() >= 0 and len(self._received) <= MESSAGE_BYTES:
                data = self._control.recv(CHUNK)
                self._received += data
                if not data:
                    self._control.close()
        except (BlockingIOError, ConnectionResetError):
            return

    def _next_answer(self, interim):
        """The answer to the last request if it has arrived; announcements of it are appended to `interim`."""
        start = 0
        try:
            while True:
                end = self._received.find(b"\n", start)
                if end < 0:
                    # A line that never ends is not a message; what comes after it is not the beginning of one either.
                    if len(self._received) - start > MESSAGE_BYTES:
                        self._control.close()
                        start = len(self._received)
                    return None
                line = bytes(self._received[start:end])
                start = end + 1
                message = self._authentic(line)
                if message is None:
                    continue
                if message.get("interim") is not True:
                    return message
                interim[MAX_INTERIM - 1 :] = [message]  # The last announcement counts.
        finally:
            del self._received[:start]

    def _authentic(self, line):
        """The message of a line if it repeats the nonce of the last request, without the nonce; else None."""
        if self._nonce is None or self._nonce.encode("ascii") not in line:
            return None
        message = read_object(line, MESSAGE_BYTES)
        if message is None or message.get("nonce") != self._nonce:
            return None
        return {name: value for name, value in message.items() if name != "nonce"}

    def _flush(self, output):
        """Takes in everything that was printed up to now.

        A terminal delivers what was written to it with a delay, but in order: a mark that we write ourselves comes
        out after all that came before it.
        """
        mark = b"\x00" + os.urandom(16).hex().encode("ascii") + b"\x00"
        unwritten = memoryview(mark)
        scanner = Scanner(output, mark)
        deadline = time.monotonic() + WRITE_TIMEOUT_S
        while not scanner.found:
            ready = wait_ready([self._master], deadline, [self._mark] if unwritten else [])
            if not ready:
                break
            if self._mark in ready:
                with suppress(BlockingIOError):
                    unwritten = unwritten[os.write(self._mark, unwritten) :]
            if self._master in ready:
                output.write(scanner.feed(_read(self._master)))
        scanner.flush()


class Scanner:
    """Passes a stream on to a buffer up to a marker, which may be split over several chunks."""

    def __init__(self, buffer, marker):
        self.buffer = buffer
        self.marker = marker
        self.found = False
        self.carry = b""

    def feed(self, data):
        """Takes one chunk; returns what followed the marker (empty until it is found)."""
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


def _read(terminal):
    """One piece of what is waiting in a terminal; empty when there is nothing."""
    try:
        return os.read(terminal, CHUNK)
    except BlockingIOError:
        return b""


def _make_plain(terminal):
    """A line end stays one byte."""
    modes = termios.tcgetattr(terminal)
    modes[1] &= ~termios.ONLCR
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
