"""What every sandbox does, whatever it is made of."""

import os
import re
import signal
import threading
from collections.abc import Callable

import pytest

from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import SandboxClosed, SandboxError
from gumshoe.protocols import Sandbox
from support.sandboxes.sandbox_backends import sh, wait_for_text

ECHO_ON_CONTROL = """
import json, os, socket
control = socket.socket(fileno=int(os.environ["GUMSHOE_CONTROL"])).makefile("rw")
print("ready (Pdb) ", end="", flush=True)
for line in control:
    message = json.loads(line)
    print("printed", message["n"], flush=True)
    if message.get("silent"):
        continue
    answer = {"echo": message["n"], "nonce": message["nonce"]}
    stale = {"echo": -1, "nonce": "0" * 32}
    soon = {"interim": True, "nonce": message["nonce"]}
    for each in ("no json", "[1]", json.dumps({"echo": 0}), json.dumps(stale), json.dumps(soon), json.dumps(answer)):
        control.write(each + "\\n")
    control.flush()
    if message.get("leave"):
        raise SystemExit(3)
"""


LONG = f"sleep {100_000 + os.getpid()}"
"""A program that ends by being killed, and no other run of these tests has."""


@pytest.mark.parametrize(
    ("argv", "given", "exit_code", "output"),
    [
        (["sh", "-c", "echo out; echo err >&2; exit 3"], None, 3, "out\nerr\n"),
        (["no-such-program"], None, 127, "no-such-program: command not found\n"),
        (["sh", "-c", "kill -TERM $$"], None, 128 + 15, ""),
        (["sh", "-c", "echo seen; exec >&- 2>&-; sleep 0.2; exit 5"], None, 5, "seen\n"),
        (["sh", "-c", "echo $COLOUR"], None, 0, "red\n"),
        (["cat"], b"fed", 0, "fed"),
        (["cat"], None, 0, ""),
        (["true"], b"x" * 1_000_000, 0, ""),
        (["echo", "$(id); `id` * 'x"], None, 0, "$(id); `id` * 'x\n"),
        (["printf", r"\377\376 \0 \033[31m(Pdb) \r\n"], None, 0, "\ufffd\ufffd \0 \x1b[31m(Pdb) \r\n"),
    ],
)
def test_a_program_that_runs_to_its_end(
    argv: list[str], given: bytes | None, exit_code: int, output: str, sandbox: WardenSandbox
) -> None:
    result = sandbox.run(argv, input=given, env={"COLOUR": "red"})
    assert (result.exit_code, result.output, result.timed_out, result.truncated) == (exit_code, output, False, False)


def test_it_is_a_sandbox_with_a_folder_and_an_environment(sandbox: WardenSandbox) -> None:
    assert isinstance(sandbox, Sandbox)
    assert sandbox.isolated == (sandbox.backend != "local")
    assert sandbox.run(["pwd"]).output == f"{sandbox.root}\n"
    assert sandbox.environment["PATH"] in sh(sandbox, "echo $PATH")


def test_a_timeout_keeps_what_was_printed_and_nothing_is_left_of_any_program(sandbox: WardenSandbox) -> None:
    script = f"echo before; {LONG} & (setsid {LONG} &) ; {LONG}"
    # However slow the machine is, at last there is time for the first word.
    tries = (sandbox.run(["sh", "-c", script], timeout=timeout) for timeout in (0.5, 5, 50))
    result = next(tried for tried in tries if tried.output)
    assert (result.timed_out, result.exit_code, result.output) == (True, None, "before\n")
    assert processes(sandbox, LONG) == 0
    result = sandbox.run(["sh", "-c", f"(setsid {LONG} >/dev/null 2>&1 &) ; {LONG} & echo done"], timeout=30)
    assert (result.output, result.timed_out) == ("done\n", False)
    assert processes(sandbox, LONG) == 0


def test_an_exchange_that_is_interrupted_ends_its_program(sandbox: WardenSandbox) -> None:
    interrupted(lambda: sandbox.run(["sh", "-c", f"{LONG} & {LONG}"]))
    assert sh(sandbox, "echo next") == "next\n"
    assert processes(sandbox, LONG) == 0
    session = sandbox.open_session([sandbox.python, "-c", ECHO_ON_CONTROL])
    interrupted(lambda: session.wait_message(60))
    assert session.request({"n": 1}, 60).message == {"echo": 1}
    session.close()


def test_an_exchange_that_another_thread_gives_up_ends_its_program(sandbox: WardenSandbox) -> None:
    errors: list[SandboxError] = []

    def wait_long() -> None:
        with pytest.raises(SandboxError, match="did not wait") as caught:
            sandbox.run(["sh", "-c", f"{LONG} & {LONG}"])
        errors.append(caught.value)

    sandbox.give_up()  # nothing is under way
    for pause in (0.0, 0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.2):  # from before the program has begun to well after
        waiting = threading.Thread(target=wait_long)
        waiting.start()
        while waiting.is_alive():
            waiting.join(pause)
            sandbox.give_up()
            waiting.join(0.2)
    assert len(errors) == 8
    assert processes(sandbox, LONG) == 0
    assert sh(sandbox, "echo next") == "next\n"


def interrupted(work: Callable[[], object]) -> None:
    """Does what is interrupted as by Ctrl-C after a while."""
    timer = threading.Timer(0.3, signal.pthread_kill, (threading.get_ident(), signal.SIGINT))

    def start_and_work() -> None:
        timer.start()
        work()

    with pytest.raises(KeyboardInterrupt):
        start_and_work()
    timer.join()


def processes(sandbox: WardenSandbox, needle: str) -> int:
    """How many processes have this in their command line, seen from within."""
    code = (
        "import glob, sys\n"
        "lines = []\n"
        "for path in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    try: lines.append(open(path).read().replace('\\0', ' ').strip())\n"
        "    except OSError: pass\n"
        "print(lines.count(sys.argv[1]))"
    )
    return int(sandbox.run([sandbox.python, "-c", code, needle]).output)


def test_endless_output_is_cut_in_the_middle(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["cat"], input=b"y" * 3_000_000).truncated
    result = sandbox.run(["sh", "-c", "echo first; yes | head -c 50000000; echo last"], timeout=60)
    assert result.truncated
    assert re.fullmatch(r"first\n[y\n]+\n\[\.\.\. \d+ bytes cut \.\.\.\]\n[y\n]+\nlast\n", result.output)
    assert len(result.output) < 300_000


def test_messages_and_prints_do_not_mix(sandbox: WardenSandbox) -> None:
    session = sandbox.open_session([sandbox.python, "-c", ECHO_ON_CONTROL])
    reply = session.request({"n": 1}, 30)
    assert (reply.message, reply.output, reply.exit_code) == ({"echo": 1}, "ready (Pdb) printed 1\n", None)
    assert reply.interim == ({"interim": True},)
    reply = session.request({"n": 2, "silent": True}, 0.2)
    assert (reply.message, reply.timed_out) == (None, True)
    printed = reply.output  # on a slow machine it comes with the next reply
    reply = session.request({"n": 3, "leave": True}, 30)
    assert (reply.message, printed + reply.output) == ({"echo": 3}, "printed 2\nprinted 3\n")
    reply = session.wait_message(30)
    assert (reply.message, reply.exit_code, reply.timed_out) == (None, 3, False)
    session.close()
    session.close()
    with pytest.raises(SandboxClosed):
        session.wait_message(1)


@pytest.mark.parametrize(
    ("argv", "output", "exit_code"),
    [
        (["sh", "-c", "test -t 0 && test -t 1 && echo terminal"], "terminal\n", 0),
        (["no-such-program"], "no-such-program: command not found\n", 127),
    ],
)
def test_a_session_that_ends_by_itself(sandbox: WardenSandbox, argv: list[str], output: str, exit_code: int) -> None:
    session = sandbox.open_session(argv)
    reply = session.wait_message(30)
    assert (reply.output, reply.exit_code, reply.timed_out) == (output, exit_code, False)
    session.close()


def test_an_interrupt_reaches_the_foreground(sandbox: WardenSandbox) -> None:
    # Short sleeps: Python notices a signal that comes just before a sleep only after it.
    sleeps = "[time.sleep(0.01) for _ in range(6000)]"
    code = f"import time\ntry: print('up', flush=True); {sleeps}\nexcept KeyboardInterrupt: print('caught')"
    session = sandbox.open_session([sandbox.python, "-c", code])
    wait_for_text(session, "up\n")
    session.interrupt()
    reply = session.wait_message(30)
    assert (reply.output, reply.exit_code) == ("caught\n", 0)
    session.interrupt()
    session.close()


def test_a_session_does_not_need_to_be_listened_to(sandbox: WardenSandbox) -> None:
    session = sandbox.open_session(["sh", "-c", "yes | head -c 5000000; echo end"])
    assert sh(sandbox, "echo meanwhile") == "meanwhile\n"
    reply = session.wait_message(60)
    assert reply.truncated
    assert reply.output.endswith("y\nend\n")
    session.close()


def test_closing_a_session_kills_all_of_it(sandbox: WardenSandbox) -> None:
    session = sandbox.open_session(["sh", "-c", f"(setsid {LONG} &); {LONG} & echo up; wait"])
    wait_for_text(session, "up\n")
    session.close()
    assert processes(sandbox, LONG) == 0


def test_a_program_that_closes_its_control_channel(sandbox: WardenSandbox) -> None:
    code = "import os, time; os.close(int(os.environ['GUMSHOE_CONTROL'])); print('up', flush=True); time.sleep(600)"
    session = sandbox.open_session([sandbox.python, "-c", code])
    wait_for_text(session, "up\n")
    assert session.wait_message(0.5).timed_out
    assert session.request({"n": 1}, 0.2).timed_out
    session.close()
