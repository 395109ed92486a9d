"""What tests look at in sandboxes of a pool."""

from __future__ import annotations

from gumshoe.env.sandboxes import open as opening
from gumshoe.env.sandboxes.client import WardenSandbox

FIND_SERVERS = """\
import glob
for each in glob.glob("/proc/[0-9]*/cmdline"):
    if "programs." + "server" in open(each).read():
        print(each.split("/")[2])
"""


def servers_in(sandbox: WardenSandbox) -> list[str]:
    """The process ids of the test servers in a sandbox."""
    return sandbox.run(["python", "-c", FIND_SERVERS]).output.split()


def fill_pools() -> None:
    """Waits until every pool has its sandboxes."""
    for pool in opening._pools.values():  # pyright: ignore[reportPrivateUsage]
        pool.fill()
