"""A folder of its own for the temporary files of a debugged program. Standard library only, Python 3.6 to 3.14.

A program that is stopped in the middle of a test and then ended does not clean up. What it leaves under a fixed name in
the shared folder would make the same test fail in the next run.
"""

import os
import shutil
import sys

_PREFIX = "gumshoe-pdb-"
_VARIABLE = "TMPDIR"


def own_scratch():
    """Gives this process, and those it starts, a new folder for temporary files. Removes folders of dead processes."""
    common = os.environ.get(_VARIABLE) or "/tmp"  # noqa: S108 - where programs look when the variable is not set
    mine = os.path.join(common, _PREFIX + str(os.getpid()))
    try:
        for name in os.listdir(common):
            number = name[len(_PREFIX) :]
            if name.startswith(_PREFIX) and number.isdigit() and not _is_others(int(number)):
                shutil.rmtree(os.path.join(common, name), ignore_errors=True)
        os.mkdir(mine, 0o700)
    except OSError:
        return
    os.environ[_VARIABLE] = mine
    known = sys.modules.get("tempfile")
    if known is not None:
        known.tempdir = None  # It has already noted the shared one.


def _is_others(pid):
    """Whether another process has this process id."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
