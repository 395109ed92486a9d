"""What the environment of a row consists of. The facts are in recipes.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gumshoe.env.export.harness_specs import harness_spec
from gumshoe.errors import TaskError

__all__ = ["Recipe", "pinned_names", "recipe_of"]

FACTS = Path(__file__).with_name("recipes.yaml")


@dataclass(frozen=True)
class Recipe:
    """How the environment of one version of a repository is made.

    Args:
        python: major and minor version.
        packages: requirements as pip reads them.
        requirements: files of the repository; the first one that is there is installed.
        prepare: commands in the repository, before it is installed.
        install: installs the repository; empty: nothing to do.
    """

    python: str
    packages: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    install: str = ""


def recipe_of(repo: str, version: str) -> Recipe:
    """How to make the environment. Raises TaskError where nobody knows, or pip is not enough."""
    facts = _facts().get(repo)
    if facts is None:
        raise TaskError(f"no recipe for {repo}: there are {', '.join(_facts())}")
    found = facts.get(version)
    spec = harness_spec(repo, version)
    if found is None or spec is None:
        raise TaskError(f"no recipe for {repo} in version {version or '(none)'}")
    if needs := found.get("needs"):
        raise TaskError(f"{repo} {version} needs {needs}, which pip cannot install")
    return Recipe(
        python=found["python"],
        packages=tuple(found.get("packages", ())),
        requirements=tuple(found.get("requirements", ())),
        prepare=tuple(found.get("prepare", ())),
        install=spec.install,
    )


def pinned_names(packages: tuple[str, ...]) -> frozenset[str]:
    """The packages whose version is given, by the name that an index knows them by."""
    names: set[str] = set()
    for text in packages:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if any(clause.operator == "==" for clause in requirement.specifier):
            names.add(canonicalize_name(requirement.name))
    return frozenset(names)


@cache
def _facts() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    facts: dict[str, list[dict[str, Any]]] = yaml.safe_load(FACTS.read_text(encoding="utf-8"))
    return {repo: {version: run for run in runs for version in run["versions"]} for repo, runs in facts.items()}
