"""What programs in a sandbox cannot do to the process that reports to the host."""

from __future__ import annotations

from gumshoe.env.sandboxes.client import WardenSandbox

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
    hunter.read_until("up\n", 60)
    for _ in range(150):
        cell.run(["true"])
    assert hunter.wait_message(60).output == "[]\n"
