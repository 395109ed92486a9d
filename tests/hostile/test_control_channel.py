"""What code under test cannot do with the control channel of a debugger or a shell."""

from __future__ import annotations

import time

import pytest

from gumshoe.env.sandboxes.client import WardenSandbox

# Answers the one request that comes; what stands for JUNK is written to the channel before.
PROGRAM = r"""
import json, os, sys, time
control = int(os.environ["GUMSHOE_CONTROL"])
request = json.loads(os.read(control, 65536).decode())
nonce = json.dumps(request["nonce"]).encode()
def write(data):
    while data:
        data = data[os.write(control, data):]
JUNK
write(b'{"nonce": ' + nonce + b', "true": 1}\n')
"""


@pytest.mark.parametrize(
    "junk",
    [
        r"write(b'\xff\xfe\n' + b'[' * 100000 + b'\n[]\n7\nnull\n')",
        r"write(b'{\"id\": 1, \"interim\": 1}\n{\"nonce\": \"0\"}\n{\"nonce\": 1}\n' * 1000)",
        r"write(b'{\"nonce\": ' + nonce + b', \"a\": ' + b'[' * 100000 + b']' * 100000 + b'}\n')",
        r"write(b'{\"nonce\": ' + nonce + b', \"a\": ' + b'9' * 100000 + b'}\n')",
        r"write(b'{\"nonce\": ' + nonce + b', \"a\": NaN}\n')",
    ],
)
def test_what_is_no_answer_within_bounds_is_dropped(cell: WardenSandbox, junk: str) -> None:
    session = cell.open_session(["python3", "-c", PROGRAM.replace("JUNK", junk)])
    assert session.request({"op": "x"}, 60).message == {"true": 1}
    session.close()


def test_an_answer_before_the_request_was_read_is_dropped(cell: WardenSandbox) -> None:
    forged = 'import os; os.write(int(os.environ["GUMSHOE_CONTROL"]), b\'{"id": 1, "op": "x", "forged": 1}\\n\')\n'
    session = cell.open_session(["python3", "-c", forged + PROGRAM.replace("JUNK", "")])
    assert session.wait_message(1).timed_out
    assert session.request({"op": "x"}, 60).message == {"true": 1}
    session.close()


@pytest.mark.parametrize(
    "flood",
    [
        r"while True: write(b'{\"nonce\": ' + nonce + b', \"interim\": true}\n')",
        r"while True: write(b'{\"id\": 1}\n' * 5000)",
        r"while True: write(b'x' * 65536)",
        r"while True: print('x' * 65536); write(b'[]\n')",
    ],
)
def test_one_deadline_holds_however_much_comes(cell: WardenSandbox, flood: str) -> None:
    session = cell.open_session(["python3", "-c", PROGRAM.replace("JUNK", flood)])
    began = time.monotonic()
    reply = session.request({"op": "x"}, 2)
    assert reply.message is None
    assert reply.timed_out or reply.exit_code == 1  # its channel was closed
    assert time.monotonic() - began < 30
    assert len(reply.interim) <= 16
    session.close()
