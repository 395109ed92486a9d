"""Whatever a sandbox hands to the host is read within bounds, or refused with the error that stands for it."""

import json
import os
import socket
import sys
import threading
import time
import tty
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pexpect.fdpexpect import fdspawn

from gumshoe.env.inside.debugger.breakpoints import Breakpoint
from gumshoe.env.inside.runs.calls import Call
from gumshoe.env.inside.warden import jobs, launcher
from gumshoe.env.inside.warden.sessions import read_object
from gumshoe.env.sandboxes.channel import Channel, check_reply
from gumshoe.errors import SandboxError
from gumshoe.protocols import Workspace
from gumshoe.records import SessionReply
from gumshoe.tools.bash import Bash
from gumshoe.tools.code.functions import Span
from gumshoe.tools.ranking.spectrum import FORMULAS, rank, read_spectrum
from gumshoe.tools.runs.debug_session import describe_results, program_output, read_announcement, read_answer
from gumshoe.tools.runs.forked_runs import ForkOutcome, read_answers
from gumshoe.tools.runs.outcomes import parse_unittest, read_outcomes
from gumshoe.tools.runs.trace_comparison import compare, summarize
from gumshoe.tools.runs.tracebacks import exception_text, printed_frames
from gumshoe.tools.runs.traced_calls import read_trace

# A tool that measures coverage makes everything slower.
CPU_S = 2.0 if sys.gettrace() is None else 10.0
"""What one piece of junk may cost the host."""
TEXT = st.text(st.characters(codec=None), max_size=8)
NUMBERS = st.integers() | st.integers(-(10**30), 10**30) | st.floats() | st.sampled_from([0, 1, -1, 1 << 31, 1 << 63])
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)
BOMBS = st.sampled_from(
    [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"\n" * 300_000]
)
FRAME = {"path": "a.py", "line": 3, "function": "f", "code": "x = 1", "local_values": {"x": "1"}}
OUTCOME = {"id": "t.py::a", "outcome": "failed", "message": "no", "title": "", "frames": [FRAME]}
SPECTRUM = {"failed": 1, "passed": 2, "lines": {"a.py": {"3": [1, 2]}}, "distances": {"a.py": {"1": 0}}}
STOP = {"path": "a.py", "line": 3, "function": "f", "reason": "breakpoint", "source": [[3, "x"]], "breakpoint": 1}
BREAKPOINT = Breakpoint(1, path="a.py", line=3, temporary=True).as_data()
ANSWER = {
    "state": "stopped",
    "results": [{"command": "c", "output": "x", "stop": STOP}],
    "stop": STOP,
    "frames": [FRAME],
    "index": 0,
    "breakpoints": [BREAKPOINT],
    "checkpoints": ["one"],
}
CALL = {
    **Call(1, {"path": "a.py", "line": 3, "function": "f"}).as_data(),
    "arguments": {"x": "1"},
    "steps": [[3, {"x": "1"}, ""], [4, {}, "E"]],
    "yields": ["1"],
}
CALLS = {"test": "t.py::a", "failed": True, "unfinished": False, "calls": 1, "kept": [CALL, CALL]}


@contextmanager
def bounded() -> Generator[None]:
    """What is read inside costs this thread no more than it may."""
    began = time.thread_time()
    yield
    assert time.thread_time() - began < CPU_S


@st.composite
def spoiled(draw: st.DrawFn, sound: Any) -> Any:
    """A sound value, some parts of which are replaced by anything, left out, or given twice."""
    if draw(st.integers(0, 5)) == 0:
        return draw(ANYTHING)
    if isinstance(sound, dict):
        parts = cast("dict[str, Any]", sound)
        kept = {name: draw(spoiled(part)) for name, part in parts.items() if draw(st.integers(0, 9))}
        return {**kept, **(draw(st.dictionaries(TEXT, ANYTHING, max_size=1)) if draw(st.booleans()) else {})}
    if isinstance(sound, list):
        return [draw(spoiled(part)) for part in cast("list[Any]", sound) * draw(st.integers(0, 2))]
    return draw(ANYTHING) if draw(st.integers(0, 7)) == 0 else sound


def junk(sound: Any) -> st.SearchStrategy[bytes]:
    """A file in which this value is expected."""
    return spoiled(sound).map(_as_bytes) | st.binary(max_size=60) | BOMBS


def _as_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


@given(st.lists(junk(OUTCOME), max_size=4).map(b"\n".join))
@example(b'{"id": "a", "outcome": "passed"}\n' * 500_000)
@example(b"\n".join(b'{"id": "%d", "outcome": "passed", "message": "%s"}' % (n, b"x" * 60_000) for n in range(600)))
def test_outcomes(data: bytes) -> None:
    with bounded():
        read = read_outcomes(data, 1)
    assert sum(len(one.model_dump_json()) for one in read) < 64 << 20
    json.dumps([one.model_dump() for one in read]).encode()


@given(
    st.text(max_size=200)
    | st.text(max_size=20).map('File "{}", line 1, in f\n    x'.format)
    | st.lists(st.sampled_from(["test_a (x.B)", "ok", "=" * 70, "FAIL: test_a (x.B)"])).map("\n".join)
)
@example("=" * 70 + "\n" + "FAIL: test_a (x.B)\n" * 50_000)
@example("test_a (x.B) ... " * 14_000)
@example(("=" * 70 + "\nFAIL: test_a (x.B)\n" + "-" * 70 + "\n") * 1600)
@example(" " * 250_000 + "x")
@example('File "/w/a.py", line ' + "9" * 5000)
@example('File "/w/a.py", line 1\n' + "\n" * 250_000)
@example("\x1b[0" * 60_000)
@example("\x1b]" * 60_000)
def test_what_was_printed(output: str) -> None:
    with bounded():
        parse_unittest(output, 1)
        assert all(not frame.path.startswith(("/", "..")) for frame in printed_frames(output, "/w"))
        exception_text(output)
        program_output(output)


@given(junk(SPECTRUM), st.sampled_from(sorted(FORMULAS)))
@example(
    b'{"failed":1,"passed":1,"lines":{"a.py":{' + b",".join(b'"%d":[1,2]' % n for n in range(900_000)) + b"}}}",
    "ochiai",
)
def test_the_spectrum(data: bytes, formula: str) -> None:
    with bounded(), suppress(ValueError):
        spectrum = read_spectrum(data)
        if spectrum.failed:
            rank(spectrum, {path: (Span("f", 1, 9),) for path in spectrum.lines}, FORMULAS[formula])


@given(junk([{"exit_code": 1, "hits": 2}, {"error": "no"}]))
def test_answers_about_changed_lines(data: bytes) -> None:
    with bounded(), suppress(ValueError):
        assert all(isinstance(one, ForkOutcome) for one in read_answers(data, 2))


@settings(max_examples=40)
@given(st.lists(junk(CALLS), max_size=4).map(b"\n".join))
@example(b"\n".join(_as_bytes({**CALLS, "failed": n % 2 == 0, "kept": [CALL] * 400}) for n in range(300)))
@example(b"\n" * (8 << 20))
@example(b"{}\n" * (3 << 20))
def test_the_calls_of_a_function(data: bytes) -> None:
    with bounded():
        trace = read_trace(data)
        for call in trace.failing[:20]:
            compare(call, trace.passing, ["x"])
        summarize(trace.failing[:100], trace.passing)


@given(spoiled(ANSWER))
@example({**ANSWER, "results": [{"command": "c", "output": "", "stop": None}]})
@example({**ANSWER, "results": [{"command": "c", "output": "", "stop": {**STOP, "breakpoint": None}}]})
@example({**ANSWER, "breakpoints": [BREAKPOINT] * 100_000})
@example({**ANSWER, "results": [{"command": "c", "output": "x" * (7 << 20)}]})
def test_answers_of_the_debugger(message: Any) -> None:
    with bounded():
        sent: Any = read_object(_as_bytes(message), 8 << 20)
        if sent is not None:
            read_announcement(sent)
            answer = read_answer(sent)
            if answer is not None:
                "\n".join(describe_results(answer.results)).encode()
                assert len(answer.breakpoints) <= 200


@given(spoiled({"nonce": "1", "exit_code": 0}), st.text(max_size=50))
def test_answers_of_the_shell(message: Any, output: str) -> None:
    sent: Any = read_object(_as_bytes(message), 8 << 20)
    reply = SessionReply(message=sent, output=output)
    session = SimpleNamespace(request=lambda message, timeout: reply, close=lambda: None)
    sandbox = SimpleNamespace(
        support="/s/support", open_session=lambda argv, env: session, write_file=lambda *a, **k: None
    )
    limits = SimpleNamespace(command_timeout_s=1.0)
    workspace = SimpleNamespace(sandbox=sandbox, task=SimpleNamespace(limits=limits))
    with bounded():
        seen = Bash().run(cast("Workspace", workspace), "true")
    assert type(seen.data["exit_code"]) in (int, type(None))


@given(st.lists(st.sampled_from([b"pid 3\n", b"exit 0\n", b"supervisor 2\n", b"exit\n"]) | st.binary(max_size=9)))
def test_what_a_supervisor_says_of_a_program(pieces: list[bytes]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, Path(os.devnull).open() as null:
        job = jobs.Job(SimpleNamespace(connection=ours), {"argv": ["true"]}, null.fileno(), null.fileno())
        received = launcher.receive(theirs)
        assert received is not None
        status = received[1][2]
        os.write(status, b"".join(pieces))
        for number in received[1]:
            os.close(number)
        while not job.over:
            job.read_status()
        job.close()
        assert type(job.exit_code) is int


# --- what stands in a warden's place gains nothing: an answer that no warden gives is a SandboxError

OUTPUT = {"head": "", "tail": "", "cut": 0}
RUN = {"exit_code": 0, "timed_out": False, "duration_s": 0.1, "output": OUTPUT, "warm": False, "cold": None}
WRONG: dict[str, list[Any]] = {
    "exit_code": ["0", -1, 1 << 40, True],
    "timed_out": [0],
    "duration_s": [float("nan"), -1],
    "output": [{}, {**OUTPUT, "head": "no base64!"}, {**OUTPUT, "cut": -1}, {**OUTPUT, "more": 1}],
    "more": [1],
}
FORGERIES = [
    *(b"no JSON", b"", b"\xff\xfe", b"[" * 4000, b"[]", b'{"ok": null}', b'{"ok": {"exit_code": 0}}'),
    *(b'{"errno": "2", "text": 1, "path": []}', b'{"nothing": "of these"}'),
]
MISSHAPEN = [_as_bytes({"ok": {**RUN, name: value}}) for name, values in WRONG.items() for value in values]


def forged(answer: bytes) -> object:
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
        return Channel(terminal).exchange("run", timeout=30)
    finally:
        forger.join()
        terminal.close()
        os.close(theirs)


def test_an_answer_of_the_right_form_passes() -> None:
    assert forged(_as_bytes({"ok": RUN})) == RUN


@pytest.mark.parametrize("answer", [*FORGERIES, *MISSHAPEN], ids=lambda answer: str(answer[:70]))
def test_a_forged_answer_is_an_error_of_the_sandbox(answer: bytes) -> None:
    message = "the sandbox answered run with something else" if answer in MISSHAPEN else None
    with pytest.raises(SandboxError, match=message):
        forged(answer)


@given(st.sampled_from(["run", "read", "walk", "grep", "changes", "session_request", "configure", "write"]), ANYTHING)
def test_any_reply_passes_or_is_an_error_of_the_sandbox(op: str, reply: object) -> None:
    with suppress(SandboxError):
        assert check_reply(op, reply) is reply
