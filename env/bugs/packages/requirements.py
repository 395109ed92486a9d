"""What the tests of a package need: what projects declare, and what pytest's errors show to be missing.

uv reads what is standard (dependencies, extras for tests, requirement files); here is what other tools keep elsewhere.
None of a package's files is run.
"""

from __future__ import annotations

import ast
import configparser
import functools
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gumshoe.env.bugs.packages.sources import entries, read_text
from gumshoe.env.tasks.projects import test_files

TEST_NAMES = ("test", "tests", "testing", "pytest", "unittest", "test-suite", "hatch-test")
DEV_NAMES = ("dev", "develop", "development", "dev-dependencies", "default")
# Requirement files have a telling name, or a short one in a folder of their own, such as requirements/test.txt.
FILES = re.compile(
    r"^(?:\w+/)?(?:(?:test|tests|testing)[-_]?requirements|requirements[-_]?(?:test|tests|testing))\.(?:txt|in)$"
    r"|^\w+/(?:tests?|testing|requirements)\.(?:txt|in)$"
)
DEV_FILES = re.compile(r"^(?:\w+/)?(?:dev[-_]?requirements|requirements[-_]?dev)\.(?:txt|in)$|^\w+/dev\.(?:txt|in)$")
FOLDERS = ("", "requirements", "test", "tests", "testing")
NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*")
# Tools that check, format, build or describe a package: its tests do without, and some take minutes to install.
NOT_FOR_TESTS = re.compile(
    r"^(?:sphinx.*|furo|myst[-_].*|mkdocs.*|pre[-_]commit|black|ruff|flake8.*|isort|mypy|pyright|pylint|bandit|tox.*|nox"
    r"|twine|build|bump.*|towncrier|codespell|check-manifest|codecov|coveralls|ipdb|ipython|jupyter.*|notebook|wheel"
    r"|pip|setuptools[-_]scm|types-.*|pytest[-_](?:mypy|black|flake8|ruff|checkdocs|enabler|perf|mypy[-_]plugins|pylint"
    r"|codspeed)|.*[-_]stubs|rst\.linker|jaraco\.(?:packaging|tidelift)|pytype|ty|uv|hatch|poetry|pdm)$",
    re.IGNORECASE,
)
REQUIRES_PYTHON = re.compile(
    r"""^\s*(?:requires-python|python_requires|Requires-Python)\s*[=:]\s*["']?([^"'\n#]+)""", re.MULTILINE
)


@dataclass(frozen=True)
class TestRequirements:
    """Requirements as they are installed, and requirement files relative to the package."""

    __test__ = False

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class PackageFiles:
    """What the configuration files of a package say; nothing where there is none, or where it cannot be read.

    Attributes:
        requires_python: the specifier of the Pythons that it runs on, such as `>=3.9`; empty where none is given.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pyproject = _toml(folder / "pyproject.toml")
        self._setup_cfg = _ini(read_text(folder / "setup.cfg"))
        legacy = _section(self._pyproject, "tool", "tox").get("legacy_tox_ini")
        self._tox_ini = _ini(legacy if isinstance(legacy, str) else read_text(folder / "tox.ini"))
        texts = (read_text(folder / name) for name in ("pyproject.toml", "PKG-INFO", "setup.py", "setup.cfg"))
        pythons = (match[1].strip() for text in texts if (match := REQUIRES_PYTHON.search(text)))
        self.requires_python = next(pythons, "")

    def test_requirements(self) -> TestRequirements:
        """What the lists named for tests hold; those for development count only if there are none for tests."""
        packages = [item for name in TEST_NAMES for item in self._named(name)]
        packages += [*self._tox(), *self._nox()]
        files = tuple(self._files(FILES))
        if not packages and not files:
            packages = [item for name in DEV_NAMES for item in self._named(name)]
            files = tuple(self._files(DEV_FILES))
        return TestRequirements(tuple(_useful(packages)), files)

    def _named(self, name: str) -> Iterator[str]:
        """The requirements in extras, groups and environments of this name."""
        data = self._pyproject
        yield from _strings(_section(data, "project", "optional-dependencies").get(name))
        yield from _group(_section(data, "dependency-groups"), name, frozenset())
        yield from _strings(_section(data, "tool", "pdm", "dev-dependencies").get(name))
        yield from _poetry(_section(data, "tool", "poetry", "group", name, "dependencies"))
        if name == "dev":
            yield from _poetry(_section(data, "tool", "poetry", "dev-dependencies"))
            yield from _strings(_section(data, "tool", "uv").get("dev-dependencies"))
        environment = _section(data, "tool", "hatch", "envs", name)
        yield from _strings(environment.get("dependencies"))
        yield from _strings(environment.get("extra-dependencies"))
        for part, key in (("options.extras_require", name), ("options", f"{name}s_require")):
            yield from self._setup_cfg.get(part, key, fallback="").splitlines()

    def _tox(self) -> Iterator[str]:
        for part in ("testenv", "testenv:py", "testenv:test", "testenv:tests"):
            for line in self._tox_ini.get(part, "deps", fallback="").splitlines():
                condition, colon, rest = line.strip().partition(":")
                text = rest.strip() if colon and re.fullmatch(r"[\w{},.!-]+", condition) else line.strip()
                if not text.startswith(("-", ".", "{", "#")):
                    yield text
        for data in (_section(self._pyproject, "tool", "tox"), _toml(self.folder / "tox.toml")):
            for name in ("testenv", "env_run_base"):
                yield from _strings(_section(data, name).get("deps"))
            for name in ("py", "test", "tests"):
                yield from _strings(_section(data, "env", name).get("deps"))

    def _nox(self) -> Iterator[str]:
        """The literal arguments of `session.install(...)` in functions whose name mentions tests."""
        try:
            tree = ast.parse(read_text(self.folder / "noxfile.py"))
        except (SyntaxError, ValueError, RecursionError):
            return
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and "test" in node.name):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if isinstance(call.func, ast.Attribute) and call.func.attr == "install":
                    words = [item.value for item in call.args if isinstance(item, ast.Constant)]
                    yield from (word for word in words if isinstance(word, str) and word[:1].isalnum())

    def _files(self, pattern: re.Pattern[str]) -> Iterator[str]:
        """The requirement files whose paths a pattern matches."""
        for below in FOLDERS:
            names = sorted(path.name for path in entries(self.folder / below) if path.is_file())
            yield from (path for name in names if pattern.match(path := f"{below}/{name}".lstrip("/")))


def _section(data: Any, *keys: str) -> dict[str, Any]:
    """The table below these keys; empty where there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _ini(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return configparser.ConfigParser(interpolation=None)
    return parser


def _useful(texts: Iterable[str]) -> Iterator[str]:
    """Requirements with a name, each once; nothing that names its own place to install from."""
    seen: set[str] = set()
    for text in (text.partition(" #")[0].strip() for text in texts):
        name = NAME.match(text)
        if name and "://" not in text and " @ " not in text and text not in seen and not NOT_FOR_TESTS.match(name[0]):
            seen.add(text)
            yield text


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


MODULE = re.compile(r"No module named '?([A-Za-z_][\w.]*)'?")
OPTIONS = re.compile(r"unrecognized arguments: (.*)")
PLUGINS = re.compile(r"Missing required plugins: (.*)")
UNKNOWN_OPTION = re.compile(r"Unknown config option: (\w+)")
LOADED_PLUGIN = re.compile(r"Error importing plugin \"([\w.]+)\"")
MAX_SCAN = 400


@functools.cache
def _tables() -> dict[str, dict[str, str]]:
    """Names to distributions, by what is named: modules, options, settings, fixtures and marks."""
    return yaml.safe_load(Path(__file__).with_name("missing.yaml").read_text(encoding="utf-8"))


def missing_packages(output: str, own: Iterable[str] = ()) -> list[str]:
    """The distributions that would resolve the complaints in `output`.

    Modules with the package's `own` names are left out, and so is Python's own library: what is missing from it belongs
    to other platforms, as `winreg` does.
    """
    tables = _tables()
    left_out = {*own, *(sys.stdlib_module_names - tables["modules"].keys())}
    modules = [name for name in MODULE.findall(output) if name.partition(".")[0] not in left_out]
    found = [
        *(_distribution(name) for name in [*modules, *LOADED_PLUGIN.findall(output)]),
        *(_plugin_of_option(word) for words in OPTIONS.findall(output) for word in words.split()),
        *(name.strip() for names in PLUGINS.findall(output) for name in names.split(",")),
        *(tables["settings"].get(name) for name in UNKNOWN_OPTION.findall(output)),
    ]
    return list(dict.fromkeys(name for name in found if name))


def _distribution(module: str) -> str:
    top = module.partition(".")[0]
    return _tables()["modules"].get(module) or _tables()["modules"].get(top) or top.replace("_", "-").lower()


def _plugin_of_option(word: str) -> str | None:
    """The plugin that knows an option of pytest's command line, by the longest beginning of it that is listed."""
    options = _tables()["options"]
    fits = [name for name in options if word == name or (word.startswith(name) and name.startswith("--"))]
    return options[max(fits, key=len)] if fits else None


def plugins_used(folder: Path) -> list[str]:
    """The plugins of pytest whose fixtures and marks the tests in a folder use by name without defining them."""
    files = dict.fromkeys([*test_files(folder)[:MAX_SCAN], *sorted(folder.rglob("conftest.py"))[:MAX_SCAN]])
    text = "\n".join(read_text(path) for path in files)
    fixtures = [
        plugin
        for name, plugin in _tables()["fixtures"].items()
        if re.search(rf"def test\w*\([^)]*\b{name}\b", text) and not re.search(rf"def {name}\(", text)
    ]
    return fixtures + [plugin for name, plugin in _tables()["marks"].items() if re.search(rf"mark\.{name}\b", text)]
