"""What programs in a sandbox cannot do to the process that reports to the host."""

from __future__ import annotations

from gumshoe.env.sandboxes.client import WardenSandbox

# Looks for a process that can be traced although it is, or still is a copy of, the warden: by the words of its command
# line, or because it holds the terminal of process 1.
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
            with open("/proc/%s/cmdline" % name, "rb") as stream:
                words = stream.read()
            if b"setraw" not in words and b"launcher" not in words:
                continue
            os.close(os.open("/proc/%s/mem" % name, os.O_RDWR))
            seen.add("memory of " + words.split(b"\0")[0].decode())
            for number in os.listdir("/proc/%s/fd" % name):
                seen.add("descriptor " + os.readlink("/proc/%s/fd/%s" % (name, number)))
        except OSError:
            continue
print(sorted(seen))
"""


def test_no_copy_of_the_warden_can_be_traced_while_programs_start(cell: WardenSandbox) -> None:
    hunter = cell.open_session(["python3", "-c", HUNTER, "6"])
    hunter.read_until("up\n", 60)
    for _ in range(150):
        cell.run(["true"])
    assert hunter.wait_message(60).output == "[]\n"
