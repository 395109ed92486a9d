"""What programs in a sandbox cannot do to the processes that start, limit and serve them, and report to the host."""

import time

import pytest

from gumshoe.env.sandboxes.client import WardenSandbox
from support.sandboxes.sandbox_backends import wait_for_text

PYTEST = ("python3", "-m", "pytest", "-q")
SOON_S = 60
"""What stays below this has not waited for a stopped process, which takes 90 s, however busy the machine is."""
OTHERS = """
import ctypes, os, resource, signal, time
others = {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}
libc = ctypes.CDLL(None, use_errno=True)
"""

# Prints what succeeded: name and process.
CHANGE = """
import platform
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}[platform.machine()]
def ioprio(which, who):
    if libc.syscall(IOPRIO_SET, which, who, 3 << 13):
        raise OSError
changes = {
    "prlimit": lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, 8)),
    "affinity": lambda pid: os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))}),
    "scheduler": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "parameters": lambda pid: os.sched_setparam(pid, os.sched_param(0)),
    "nice": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "ionice": lambda pid: ioprio(1, pid),
    "nice of a user": lambda pid: os.setpriority(os.PRIO_USER, 0, 19),
    "ionice of a user": lambda pid: ioprio(3, 0),
}
for name, change in changes.items():
    for pid in sorted(others):
        try: change(pid)
        except OSError: continue
        print(name, pid)
"""

ITSELF = """
import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.nice(1)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], os.sched_getscheduler(0) == os.SCHED_BATCH)
"""

STOP = "for pid in others:\n    try: os.kill(pid, signal.SIGSTOP)\n    except OSError: pass\n"
STOP_AGAIN = "import subprocess\nsubprocess.Popen(['sh', '-c', 'while :; do kill -STOP -1; done'])\n"


def test_limits_and_scheduling_can_be_changed_only_of_the_own_process(cell: WardenSandbox) -> None:
    cell.prepare_support()
    cell.run(PYTEST, warm=True)
    done = cell.run(["python3", "-c", OTHERS + CHANGE])
    assert (done.output, done.exit_code) == ("", 0)
    assert cell.run(["python3", "-c", ITSELF]).output == "64 True\n"


@pytest.mark.parametrize("attack", [STOP, STOP_AGAIN], ids=["once", "forever"])
def test_a_time_limit_holds_though_everything_was_stopped(cell: WardenSandbox, attack: str) -> None:
    cell.prepare_support()
    cell.run(PYTEST, warm=True)
    for _ in range(2):
        began = time.monotonic()
        assert cell.run(["python3", "-c", OTHERS + attack + "time.sleep(600)"], timeout=2).timed_out
        assert time.monotonic() - began < SOON_S
    session = cell.open_session(["python3", "-c", OTHERS + attack + "time.sleep(600)"])
    began = time.monotonic()
    assert session.wait_message(2).timed_out
    session.close()
    assert cell.run(["echo", "next"], timeout=20).output == "next\n"
    assert cell.run(PYTEST, timeout=60, warm=True).exit_code == 0
    assert time.monotonic() - began < SOON_S


# Looks for a process that can be traced although it is, or still is a copy of, the warden or the launcher, by the words
# of its command line. They are read last: what is a copy then was one when its memory was opened.
HUNTER = r"""
import os, sys, time
end = time.monotonic() + float(sys.argv[1])
me, seen = os.getpid(), set()
print("up", flush=True)
while time.monotonic() < end:
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == me:
            continue
        try:
            os.close(os.open("/proc/%s/mem" % name, os.O_RDWR))
            held = [os.readlink("/proc/%s/fd/%s" % (name, number)) for number in os.listdir("/proc/%s/fd" % name)]
            with open("/proc/%s/cmdline" % name, "rb") as stream:
                words = stream.read()
            if b"setraw" in words or b"launcher" in words:
                seen.add("memory of " + words.split(b"\0")[0].decode())
                seen.update("descriptor " + one for one in held)
        except OSError:
            continue
print(sorted(seen))
"""


def test_no_copy_of_the_warden_can_be_traced_while_programs_start(cell: WardenSandbox) -> None:
    hunter = cell.open_session(["python3", "-c", HUNTER, "6"])
    wait_for_text(hunter, "up\n")
    for _ in range(150):
        cell.run(["true"])
    assert hunter.wait_message(60).output == "[]\n"


# --- the control channel of a debugger or a shell

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


JUNK = r"""
write(b'\xff\xfe\n' + b'[' * 100000 + b'\n[]\n7\nnull\n')
write(b'{"id": 1, "interim": 1}\n{"nonce": "0"}\n{"nonce": 1}\n' * 1000)
write(b'{"nonce": ' + nonce + b', "a": ' + b'[' * 100000 + b']' * 100000 + b'}\n')
write(b'{"nonce": ' + nonce + b', "a": ' + b'9' * 100000 + b'}\n')
write(b'{"nonce": ' + nonce + b', "a": NaN}\n')
"""


def test_what_is_no_answer_within_bounds_is_dropped(cell: WardenSandbox) -> None:
    """Nor is one that comes before the request was read."""
    forged = 'import os; os.write(int(os.environ["GUMSHOE_CONTROL"]), b\'{"id": 1, "op": "x", "forged": 1}\\n\')\n'
    session = cell.open_session(["python3", "-c", forged + PROGRAM.replace("JUNK", JUNK)])
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
