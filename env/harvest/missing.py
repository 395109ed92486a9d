"""What pytest's error messages say about packages that are not installed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from gumshoe.env.harvest.metadata import read_text
from gumshoe.env.tasks.projects import test_files
from gumshoe.tools.text import plain_text

__all__ = ["missing_packages", "plugins_used", "reason_of"]

MODULE = re.compile(r"No module named '?([A-Za-z_][\w.]*)'?")
OPTIONS = re.compile(r"unrecognized arguments: (.*)")
PLUGINS = re.compile(r"Missing required plugins: (.*)")
UNKNOWN_OPTION = re.compile(r"Unknown config option: (\w+)")
LOADED_PLUGIN = re.compile(r"Error importing plugin \"([\w.]+)\"")
MAX_SCAN = 400

# Modules whose distribution has another name.
DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "Crypto": "pycryptodome",
    "dateutil": "python-dateutil",
    "distutils": "setuptools",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "flask_sqlalchemy": "flask-sqlalchemy",
    "git": "gitpython",
    "google.protobuf": "protobuf",
    "jose": "python-jose",
    "jwt": "pyjwt",
    "magic": "python-magic",
    "mock": "mock",
    "OpenSSL": "pyopenssl",
    "PIL": "pillow",
    "pkg_resources": "setuptools<81",
    "pytest_cov": "pytest-cov",
    "setuptools": "setuptools",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "wx": "wxpython",
    "yaml": "pyyaml",
    "zmq": "pyzmq",
}
# The start of an option of pytest's command line, or of a setting, to the plugin that knows it.
PLUGIN_OPTIONS = {
    "--cov": "pytest-cov",
    "--no-cov": "pytest-cov",
    "--benchmark": "pytest-benchmark",
    "--timeout": "pytest-timeout",
    "--dist": "pytest-xdist",
    "--numprocesses": "pytest-xdist",
    "--maxprocesses": "pytest-xdist",
    "-n": "pytest-xdist",
    "--asyncio": "pytest-asyncio",
    "--reruns": "pytest-rerunfailures",
    "--randomly": "pytest-randomly",
    "--hypothesis": "hypothesis",
    "--mypy": "pytest-mypy",
    "--flake8": "pytest-flake8",
    "--black": "pytest-black",
    "--html": "pytest-html",
    "--doctest-plus": "pytest-doctestplus",
    "--doctest-rst": "pytest-doctestplus",
    "--doctest-ufunc": "pytest-doctestplus",
    "--nbval": "nbval",
    "--snapshot": "syrupy",
    "--sugar": "pytest-sugar",
    "--disable-socket": "pytest-socket",
    "--allow-hosts": "pytest-socket",
    "--ruff": "pytest-ruff",
    "--pylint": "pytest-pylint",
}
PLUGIN_SETTINGS = {
    "asyncio_mode": "pytest-asyncio",
    "asyncio_default_fixture_loop_scope": "pytest-asyncio",
    "timeout": "pytest-timeout",
    "doctest_plus": "pytest-doctestplus",
    "mypy_plugins": "pytest-mypy",
    "env": "pytest-env",
}
FIXTURES = {
    "mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "requests_mock": "requests-mock",
    "freezer": "pytest-freezer",
    "datadir": "pytest-datadir",
    "httpserver": "pytest-httpserver",
}
MARKS = {
    "asyncio": "pytest-asyncio",
    "trio": "pytest-trio",
    "timeout": "pytest-timeout",
    "flaky": "pytest-rerunfailures",
}


def missing_packages(output: str, own: Iterable[str] = ()) -> list[str]:
    """The distributions that would resolve the complaints in `output`.

    Modules with the package's `own` names are left out, and so is Python's own library: what is missing from it belongs
    to other platforms, as `winreg` does.
    """
    left_out = {*own, *(sys.stdlib_module_names - DISTRIBUTIONS.keys())}
    modules = [name for name in MODULE.findall(output) if name.partition(".")[0] not in left_out]
    found = [_distribution(name) for name in modules]
    found += [plugin for match in LOADED_PLUGIN.findall(output) for plugin in [_distribution(match)]]
    for words in OPTIONS.findall(output):
        found += [plugin for word in words.split() if (plugin := _longest(word)) is not None]
    for names in PLUGINS.findall(output):
        found += [name.strip() for name in names.split(",")]
    found += [PLUGIN_SETTINGS[name] for name in UNKNOWN_OPTION.findall(output) if name in PLUGIN_SETTINGS]
    return list(dict.fromkeys(found))


def plugins_used(folder: Path) -> list[str]:
    """The plugins of pytest whose fixtures and marks the tests in a folder use by name without defining them."""
    files = dict.fromkeys([*test_files(folder)[:MAX_SCAN], *sorted(folder.rglob("conftest.py"))[:MAX_SCAN]])
    text = "\n".join(read_text(path) for path in files)
    fixtures = [
        plugin
        for name, plugin in FIXTURES.items()
        if re.search(rf"def test\w*\([^)]*\b{name}\b", text) and not re.search(rf"def {name}\(", text)
    ]
    return fixtures + [plugin for name, plugin in MARKS.items() if re.search(rf"mark\.{name}\b", text)]


def reason_of(output: str) -> str:
    """The line of pytest's output that best tells why nothing works: the exception, not the summary."""
    lines = [line.removeprefix("INTERNALERROR>").strip() for line in plain_text(output).splitlines() if line.strip()]
    for wanted in (_marked, _errors):
        found = list(wanted(lines))
        if found:
            return found[0][:300]
    return lines[-1][:300] if lines else "it printed nothing"


def _marked(lines: list[str]) -> Iterator[str]:
    """What pytest marks as the exception."""
    for line in lines:
        if line.startswith("E ") and re.match(r"^E\s+[\w.]*(?:Error|Exception|Warning|Interrupted|Failed)\b", line):
            yield line[1:].strip()


def _errors(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if re.match(r"^(?:[\w.]+Error\b|ERROR: |error: )", line) and not line.startswith("ERROR: usage:"):
            yield line


def _distribution(module: str) -> str:
    top = module.partition(".")[0]
    return DISTRIBUTIONS.get(module) or DISTRIBUTIONS.get(top) or top.replace("_", "-").lower()


def _longest(word: str) -> str | None:
    fits = [name for name in PLUGIN_OPTIONS if word == name or (word.startswith(name) and name.startswith("--"))]
    return PLUGIN_OPTIONS[max(fits, key=len)] if fits else None
