"""How the repositories of SWE-bench run their tests, by version. The facts are in harness_specs.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["SOURCE", "HarnessSpec", "harness_spec"]

SOURCE = "swebench 4.1.0"
"""Where the facts come from."""
FACTS = Path(__file__).with_name("harness_specs.yaml")


@dataclass(frozen=True)
class HarnessSpec:
    """How one version of a repository runs its tests.

    Args:
        parser: name of the harness's function that reads the log.
        tests: the command; the names of the tests follow it.
        before: commands in the environment, before the installation.
        install: installs the patched repository; empty: nothing to do.
    """

    parser: str
    tests: str
    before: tuple[str, ...] = ()
    install: str = ""


def harness_spec(repo: str, version: str) -> HarnessSpec | None:
    """How a version of a repository runs its tests; None where the version is not known.

    Raises:
        KeyError: the repository is not known.
    """
    return _specs()[repo].get(version)


@cache
def _specs() -> Mapping[str, Mapping[str, HarnessSpec]]:
    facts: dict[str, dict[str, Any]] = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    return {
        repo: {
            version: HarnessSpec(known["parser"], run["tests"], tuple(run.get("before", ())), run.get("install", ""))
            for run in known["runs"]
            for version in run["versions"]
        }
        for repo, known in facts.items()
    }
