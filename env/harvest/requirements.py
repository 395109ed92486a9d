"""What the tests of a package need, from all the places where projects declare it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gumshoe.env.harvest.metadata import PackageFiles, read_text, section

__all__ = ["TestRequirements", "test_requirements"]

TEST_NAMES = ("test", "tests", "testing", "pytest", "unittest", "test-suite", "hatch-test")
DEV_NAMES = ("dev", "develop", "development", "dev-dependencies", "default")
FILES = re.compile(r"^(?:(?:test|tests|testing)[-_]?requirements|requirements[-_]?(?:test|tests|testing))\.(?:txt|in)$")
DEV_FILES = re.compile(r"^(?:dev[-_]?requirements|requirements[-_]?dev)\.(?:txt|in)$")
# Files in a folder of their own, such as requirements/test.txt.
SHORT_FILES, SHORT_DEV_FILES = (
    re.compile(r"^(?:tests?|testing|requirements)\.(?:txt|in)$"),
    re.compile(r"^dev\.(?:txt|in)$"),
)
FOLDERS = ("", "requirements", "test", "tests", "testing")
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
# Tools that check, format, build or describe a package: its tests do without, and some take minutes to install.
NOT_FOR_TESTS = re.compile(
    r"^(?:sphinx.*|furo|myst[-_].*|mkdocs.*|pre[-_]commit|black|ruff|flake8.*|isort|mypy|pyright|pylint|bandit|tox.*|nox"
    r"|twine|build|bump.*|towncrier|codespell|check-manifest|codecov|coveralls|ipdb|ipython|jupyter.*|notebook|wheel"
    r"|pip|setuptools[-_]scm|types-.*|pytest[-_](?:mypy|black|flake8|ruff|checkdocs|enabler|perf|mypy[-_]plugins|pylint"
    r"|codspeed|enabler)|.*[-_]stubs|rst\.linker|jaraco\.(?:packaging|tidelift)|pytype|ty|uv|hatch|poetry|pdm)$",
    re.IGNORECASE,
)
EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True)
class TestRequirements:
    """Requirements as pip reads them, and requirement files relative to the package."""

    __test__ = False

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def test_requirements(package: PackageFiles) -> TestRequirements:
    """What the lists named for tests hold; those for development count only if there are none for tests."""
    for names, patterns, tools in (
        (TEST_NAMES, (FILES, SHORT_FILES), True),
        (DEV_NAMES, (DEV_FILES, SHORT_DEV_FILES), False),
    ):
        packages = [item for name in names for item in _named(package, name)]
        if tools:
            packages += [*_tox(package), *_nox(package)]
        files = tuple(_files(package.folder, *patterns))
        if packages or files:
            return TestRequirements(tuple(_useful(packages)), files)
    return TestRequirements()


def _useful(texts: Iterable[str]) -> Iterator[str]:
    """Requirements with a name, each once; nothing that names its own place to install from."""
    seen: set[str] = set()
    for text in (text.partition(" #")[0].strip() for text in texts):
        name = NAME.match(text)
        if name and "://" not in text and " @ " not in text and text not in seen and not NOT_FOR_TESTS.match(name[0]):
            seen.add(text)
            yield text


def _named(package: PackageFiles, name: str) -> Iterator[str]:
    """The requirements in extras, groups and environments of this name."""
    data = package.pyproject
    yield from _strings(section(data, "project", "optional-dependencies").get(name))
    yield from _group(section(data, "dependency-groups"), name, frozenset())
    yield from _strings(section(data, "tool", "pdm", "dev-dependencies").get(name))
    yield from _poetry(section(data, "tool", "poetry", "group", name, "dependencies"))
    if name == "dev":
        yield from _poetry(section(data, "tool", "poetry", "dev-dependencies"))
        yield from _strings(section(data, "tool", "uv").get("dev-dependencies"))
    environment = section(data, "tool", "hatch", "envs", name)
    yield from _strings(environment.get("dependencies"))
    yield from _strings(environment.get("extra-dependencies"))
    yield from _strings(section(package.setup, "extras_require").get(name))
    yield from _strings(package.setup.get(f"{name}s_require"))
    for part, key in (("options.extras_require", name), ("options", f"{name}s_require")):
        yield from package.setup_cfg.get(part, key, fallback="").splitlines()
    for line in package.metadata.get("requires-dist", []):
        requirement, _, marker = line.partition(";")
        if (found := EXTRA.search(marker)) and found[1] == name:
            rest = [word for word in re.split(r"\s+and\s+", marker) if "extra" not in word]
            yield f"{requirement.strip()}; {' and '.join(rest).strip(' ()')}" if rest else requirement.strip()


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, str))


def _group(groups: dict[str, Any], name: str, above: frozenset[str]) -> Iterator[str]:
    """A dependency group with the groups that it includes."""
    for item in groups.get(name) or () if name not in above else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict) and isinstance(item.get("include-group"), str):
            yield from _group(groups, item["include-group"], above | {name})


def _poetry(table: dict[str, Any]) -> Iterator[str]:
    """Poetry's own notation; a caret is a lower bound here."""
    for name, value in table.items():
        version = value.get("version", "*") if isinstance(value, dict) else value
        if isinstance(version, str) and name != "python":
            yield name if version == "*" else f"{name}{_poetry_version(version)}"


def _poetry_version(text: str) -> str:
    if text.startswith(("^", "~")):
        return f">={text.lstrip('^~=')}"
    return text if text[0] in "<>=!" else f"=={text}"


def _tox(package: PackageFiles) -> Iterator[str]:
    for part in ("testenv", "testenv:py", "testenv:test", "testenv:tests"):
        for line in package.tox.get(part, "deps", fallback="").splitlines():
            condition, colon, rest = line.strip().partition(":")
            text = rest.strip() if colon and re.fullmatch(r"[\w{},.!-]+", condition) else line.strip()
            if not text.startswith(("-", ".", "{", "#")):
                yield text
    for data in (section(package.pyproject, "tool", "tox"), package.tox_toml):
        for name in ("testenv", "env_run_base"):
            yield from _strings(section(data, name).get("deps"))
        for name in ("py", "test", "tests"):
            yield from _strings(section(data, "env", name).get("deps"))


def _nox(package: PackageFiles) -> Iterator[str]:
    """The literal arguments of `session.install(...)` in functions whose name mentions tests."""
    try:
        tree = ast.parse(read_text(package.folder / "noxfile.py"))
    except (SyntaxError, ValueError, RecursionError):
        return
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and "test" in node.name):
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            if isinstance(call.func, ast.Attribute) and call.func.attr == "install":
                words = [item.value for item in call.args if isinstance(item, ast.Constant)]
                yield from (word for word in words if isinstance(word, str) and word[:1].isalnum())


def _files(folder: Path, pattern: re.Pattern[str], short: re.Pattern[str]) -> Iterator[str]:
    for below in FOLDERS:
        place = folder / below
        if not place.is_dir() or place.is_symlink():
            continue
        names = sorted(path.name for path in place.iterdir() if path.is_file())
        for name in names:
            if pattern.match(name) or (below and short.match(name)):
                yield f"{below}/{name}".lstrip("/")
