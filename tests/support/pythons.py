"""The interpreters of this machine, and environments of a task that have one of them.

GUMSHOE_TEST_PYTHONS names further interpreters for the tests of what runs in sandboxes: paths of Python 3.6 or later,
each with pytest, with `:` between them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from gumshoe.env.virtualenvs import RECORD, environment_folder


def find_pythons(*, with_pytest: bool) -> list[Path]:
    """The interpreters to test with; the one that runs the tests if there is no other. Those in the variable have
    pytest; those of pyenv and that of the system may not.
    """
    named = [Path(path) for path in os.environ.get("GUMSHOE_TEST_PYTHONS", "").split(os.pathsep) if path]
    if with_pytest:
        return named or [Path(sys.executable)]
    found = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python3"))
    system = [path for path in (Path("/usr/bin/python3"),) if path.exists()]
    return [*found, *system, *named] or [Path(sys.executable)]


def make_environment(python: Path, key: str, **variables: str) -> tuple[int, int]:
    """Makes the environment `key` in the cache, with this interpreter and no packages. Returns its version."""
    version = json.loads(
        subprocess.check_output([python, "-c", "import sys, json; print(json.dumps(sys.version_info[:2]))"])
    )
    folder = environment_folder(key)
    subprocess.run([python, "-m", "venv", "--without-pip", folder / "root"], check=True)
    lock = {"python": "{}.{}".format(*version), "machine": "", "packages": (), "variables": variables}
    (folder / RECORD).write_text(json.dumps({"python": str(python), "version": version, "lock": lock}))
    return version[0], version[1]
