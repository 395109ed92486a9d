"""The launcher: a small process that starts every program, so that no program is ever a copy of the warden.

The warden executes it before the first program runs. It holds nothing of the warden's: no terminal to the host, no
nonce, no descriptor but one socket, on which it receives what to start. Neither it nor what it forks can be traced
until a program has replaced it; then nothing of it is left.

A request is the length of a JSON object (four bytes), then the object: `argv`, `cwd`, `env`, `limits`, `terminal`. With
it come the descriptors of standard input, standard output, the status pipe, the liveness pipe and, for sessions, the
control socket.
"""

import array
import json
import os
import signal
import socket
import struct

from . import system
from .supervisor import IGNORED, supervise

HEADER = struct.Struct("!I")
MAX_DESCRIPTORS = 5


def serve(descriptor):
    """Starts programs until the warden has gone."""
    system.offer_to_oom_killer()
    system.hide_memory()
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # Supervisors are reaped by the kernel; the warden learns of their end from the status pipe.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    connection = socket.socket(fileno=descriptor)
    while True:
        received = receive(connection)
        if received is None:
            return
        launch, descriptors = received
        if os.fork() == 0:
            os.dup2(1, descriptor)  # /dev/null takes the socket's place, so that no other descriptor gets it.
            supervise(launch, *descriptors)
        for each in descriptors:
            os.close(each)


def send(connection, launch, descriptors):
    """Sends what to start. Raises OSError when the launcher has died."""
    data = json.dumps(launch).encode("ascii")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    connection.sendmsg([HEADER.pack(len(data))], ancillary)
    connection.sendall(data)


def receive(connection):
    """What `send` sent: the object and the descriptors; None when the other side has closed."""
    descriptors = array.array("i")
    space = socket.CMSG_SPACE(MAX_DESCRIPTORS * descriptors.itemsize)
    header, ancillary, _flags, _address = connection.recvmsg(HEADER.size, space, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    header += _exactly(connection, HEADER.size - len(header))
    if len(header) < HEADER.size:
        return None
    length = HEADER.unpack(header)[0]
    text = _exactly(connection, length)
    return None if len(text) < length else (json.loads(text.decode("ascii")), list(descriptors))


def _exactly(connection, count):
    """That many bytes; fewer when the other side has closed."""
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            break
        data += piece
    return bytes(data)
