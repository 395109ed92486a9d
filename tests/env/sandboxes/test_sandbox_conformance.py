"""What every sandbox does, whatever it is made of."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable

import pytest

from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import SandboxClosed, SandboxError
from gumshoe.protocols import Sandbox
from support.sandboxes.shell import sh, wait_for_text

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


# --- programs ---------------------------------------------------------------------------------------------------


def test_it_is_a_sandbox(sandbox: WardenSandbox) -> None:
    assert isinstance(sandbox, Sandbox)
    assert sandbox.isolated == (sandbox.backend != "local")


def test_output_and_exit_code(sandbox: WardenSandbox) -> None:
    result = sandbox.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result.exit_code, result.output, result.timed_out, result.truncated) == (3, "out\nerr\n", False, False)


def test_a_program_that_does_not_exist(sandbox: WardenSandbox) -> None:
    result = sandbox.run(["no-such-program"])
    assert result.exit_code == 127
    assert result.output == "no-such-program: command not found\n"


def test_a_signal_is_told_as_a_shell_would(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["sh", "-c", "kill -TERM $$"]).exit_code == 128 + 15


def test_input_folder_and_environment(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["cat"], input=b"fed").output == "fed"
    assert sandbox.run(["cat"]).output == ""
    assert sandbox.run(["pwd"]).output == f"{sandbox.root}\n"
    assert sandbox.run(["sh", "-c", "echo $COLOUR"], env={"COLOUR": "red"}).output == "red\n"
    assert sandbox.environment["PATH"] in sh(sandbox, "echo $PATH")


def test_a_program_that_does_not_read_its_input(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["true"], input=b"x" * 1_000_000).exit_code == 0


def test_much_input_and_output_at_once(sandbox: WardenSandbox) -> None:
    result = sandbox.run(["cat"], input=b"y" * 3_000_000)
    assert result.truncated
    assert result.output.startswith("yyy")


def test_arguments_never_reach_a_shell(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["echo", "$(id); `id` * 'x"]).output == "$(id); `id` * 'x\n"


def test_a_timeout_keeps_what_was_printed_and_kills_every_process(sandbox: WardenSandbox) -> None:
    script = f"echo before; {LONG} & (setsid {LONG} &) ; {LONG}"
    # However slow the machine is, at last there is time for the first word.
    tries = (sandbox.run(["sh", "-c", script], timeout=timeout) for timeout in (0.5, 5, 50))
    result = next(tried for tried in tries if tried.output)
    assert result.timed_out
    assert result.exit_code is None
    assert result.output == "before\n"
    assert processes(sandbox, LONG) == 0
    assert sh(sandbox, "echo next") == "next\n"


def test_nothing_is_left_of_a_program_that_has_ended(sandbox: WardenSandbox) -> None:
    result = sandbox.run(["sh", "-c", f"(setsid {LONG} >/dev/null 2>&1 &) ; {LONG} & echo done"], timeout=30)
    assert result.output == "done\n"
    assert not result.timed_out
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


def test_a_program_that_closes_its_output(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["sh", "-c", "echo seen; exec >&- 2>&-; sleep 0.2; exit 5"]).exit_code == 5


def test_endless_output_is_cut_in_the_middle(sandbox: WardenSandbox) -> None:
    result = sandbox.run(["sh", "-c", "echo first; yes | head -c 50000000; echo last"], timeout=60)
    assert result.truncated
    assert result.output.startswith("first\ny\n")
    assert result.output.endswith("y\nlast\n")
    assert re.search(r"\n\[\.\.\. \d+ bytes cut \.\.\.\]\n", result.output)
    assert len(result.output) < 300_000


def test_bytes_that_are_not_text(sandbox: WardenSandbox) -> None:
    assert sandbox.run(["printf", r"\377\376 \0 \033[31m(Pdb) \r\n"]).output == "\ufffd\ufffd \0 \x1b[31m(Pdb) \r\n"


# --- sessions ---------------------------------------------------------------------------------------------------


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


def test_a_terminal(sandbox: WardenSandbox) -> None:
    session = sandbox.open_session(["sh", "-c", "test -t 0 && test -t 1 && echo terminal"])
    reply = session.wait_message(30)
    assert (reply.output, reply.exit_code, reply.timed_out) == ("terminal\n", 0, False)
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


def test_a_session_of_a_program_that_does_not_exist(sandbox: WardenSandbox) -> None:
    session = sandbox.open_session(["no-such-program"])
    reply = session.wait_message(30)
    assert (reply.output, reply.exit_code) == ("no-such-program: command not found\n", 127)
    session.close()
