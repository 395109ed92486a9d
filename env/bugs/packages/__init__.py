"""`gumshoe harvest`: from the names of packages to verified tasks.

    harvest.py         many packages at a time, each with a set of its own, and the set that combines them;
        │              each through its stages, and the report of what became of it
        │ get             sources.py        a folder, repository, sdist or requirement as a folder of sources
        │ environment     environment.py    installs the package with what its tests need, until they can be collected
        │                  ├ requirements.py    what they need
        │                  ├ build_sandbox.py   the one sandbox with network, and the environment that is made in it
        │                  └ machine.py         the Pythons and the package indexes of this machine
        │ baseline        baseline.py       which tests count
        │ bugs            bugs.py           bugs that are made, by ../make.py
        │ history         history.py        bugs that people repaired
        │                  └ fixes.py           commits as git has them
        │ check           check.py          proves each task from the files of the set alone
        └ difficulty      check.py          how hard each bug is to find

What a stage has found is kept on this machine, by the hash of what went into it and `VERSION`; what check and
difficulty have found lies in the folder of the package's set, by keys without it.

| stage | its key is made of |
|---|---|
| get | the source: its kind, its text, and its content, size and time, or commit |
| environment | the package's name, its sources or commit, the config of builds, and the runner if that is doctest |
| baseline | the environment's key, its lock, pytest's arguments, the config of the baseline, the kind of sandbox |
| bugs | the name, the project as the set ships it, its environment, how its tests are run, the config, the operators |
| history | the commit, the first environment's lock, the config of builds, what is excluded, the kind of sandbox |
| check | the task, the kind of sandbox, the tests of the oracle |
| difficulty | the task |

What a key leaves out is not noticed:

- environment: one stays as it was built when another Python is installed, or newer dependencies are released
- get: an unpinned requirement (`toolz`) stays at the version that was the newest when it was first fetched
- history: what became of a commit stays when `baseline.run_timeout_s` or `bug_run_s` is changed, although a run that
  reaches its limit may be the reason, or when a Python is installed that its environment lacked
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.cache import digest
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.storage import cache_folder

__all__ = ["PackageHarvest", "stage_folder", "stage_key"]


@dataclass(frozen=True)
class PackageHarvest:
    """What all stages of one package need.

    Attributes:
        name: of the package, good for folders and ids.
        folder: of its task set.
        say: is told what is being done.
    """

    name: str
    config: HarvestConfig
    folder: Path
    say: Callable[[str], None] = lambda text: None


# Changed whenever a stage gives a different result for the same input; check and difficulty aside.
VERSION = 9


def stage_key(*parts: Any) -> str:
    """A name for what goes into a stage."""
    return digest(VERSION, *parts)


def stage_folder(stage: str) -> Path:
    """Where the results of a stage are kept."""
    return cache_folder() / "harvest" / stage
