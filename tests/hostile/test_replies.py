"""What stands in a warden's place gains nothing: an answer that no warden gives is a SandboxError."""

from __future__ import annotations

import os
import threading
import tty
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pexpect.fdpexpect import fdspawn

from gumshoe.env.sandboxes.connection.channel import Channel
from gumshoe.env.sandboxes.connection.replies import check_reply
from gumshoe.errors import SandboxError

OUTPUT = {"head": "", "tail": "", "cut": 0}
RUN = {"exit_code": 0, "timed_out": False, "duration_s": 0.1, "output": OUTPUT, "warm": False, "cold": None}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)


def forged(answer: bytes, op: str = "run") -> object:
    """What an exchange makes of an answer that knows the request's nonce."""
    ours, theirs = os.openpty()
    terminal = fdspawn(ours)

    def answers() -> None:
        request = b""
        while not request.endswith(b"\n"):
            request += os.read(theirs, 65536)
        nonce = request.split(b'"nonce": "')[1][:32]
        os.write(theirs, nonce + answer + nonce + b"\n")

    tty.setraw(theirs)  # Echoes nothing and changes no byte, as the warden sets it.
    forger = threading.Thread(target=answers)
    forger.start()
    try:
        return Channel(terminal).exchange(op, timeout=30)
    finally:
        forger.join()
        terminal.close()
        os.close(theirs)


@pytest.mark.parametrize(
    "answer",
    [
        b"no JSON",
        b"",
        b"\xff\xfe",
        b"[" * 4000,
        b"[]",
        b'{"ok": null}',
        b'{"ok": {"exit_code": 0}}',
        b'{"ok": {"exit_code": "0", "timed_out": false, "duration_s": 0, "output": {}}}',
        b'{"errno": "2", "text": 1, "path": []}',
        b'{"nothing": "of these"}',
    ],
)
def test_a_forged_answer_is_an_error_of_the_sandbox(answer: bytes) -> None:
    with pytest.raises(SandboxError):
        forged(answer)


def test_an_answer_of_the_right_form_passes() -> None:
    answer = (
        b'{"ok": {"exit_code": 0, "timed_out": false, "duration_s": 0.1, "warm": false, '
        b'"cold": null, "output": {"head": "", "tail": "", "cut": 0}}}'
    )
    assert forged(answer) == RUN


@pytest.mark.parametrize(
    "change",
    [
        {"exit_code": -1},
        {"exit_code": 1 << 40},
        {"exit_code": True},
        {"timed_out": 0},
        {"duration_s": float("nan")},
        {"duration_s": -1},
        {"output": {**OUTPUT, "head": "no base64!"}},
        {"output": {**OUTPUT, "cut": -1}},
        {"output": {**OUTPUT, "more": 1}},
        {"more": 1},
    ],
    ids=str,
)
def test_a_reply_of_the_wrong_shape_is_an_error_of_the_sandbox(change: dict[str, object]) -> None:
    assert check_reply("run", RUN) == RUN
    with pytest.raises(SandboxError, match="the sandbox answered run with something else"):
        check_reply("run", {**RUN, **change})


@given(st.sampled_from(["run", "read", "walk", "grep", "changes", "session_poll", "configure", "write"]), JSON)
def test_any_reply_passes_or_is_an_error_of_the_sandbox(op: str, reply: object) -> None:
    with suppress(SandboxError):
        assert check_reply(op, reply) is reply
