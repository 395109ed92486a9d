"""A harvested set in another place: in another folder on another machine, in another kind of sandbox, in `debug`."""

from __future__ import annotations

import json
import shutil
import sysconfig
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.packages.machine import interpreters
from gumshoe.env.config import SandboxConfig
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_task
from support.folder_tasks import write_files

pytestmark = [pytest.mark.needs("bubblewrap"), pytest.mark.usefixtures("own_cache")]

SETUP = """\
from setuptools import Extension, setup

setup(
    name="calm",
    version="1.2",
    packages=["calm"],
    extras_require={"test": ["iniconfig", "pytest-timeout"]},
    ext_modules=[Extension("calm._fast", ["calm/_fast.c"])],
)
"""
FAST = """\
#include <Python.h>

static PyObject *one(PyObject *self, PyObject *ignored) { return PyLong_FromLong(1); }
static PyMethodDef methods[] = {{"one", one, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", "", -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
LINES = """\
from calm._fast import one


def line(x):
    y = 2 * x
    return y + one()


def curve(x):
    if x < 0:
        return 0
    return x * x
"""
TESTS = """\
import sys

import iniconfig
from calm import _fast
from calm.lines import curve, line


def test_line():
    assert line(5) == 11


def test_curve():
    assert curve(3) == 9


def test_nothing():
    assert curve(-1) == 0


def test_environment():
    assert sys.prefix == "/environment"


def test_built():
    assert _fast.__file__.startswith("{workspace}")


def test_installed():
    assert iniconfig.__file__.startswith("/environment")
"""
OPTIONS = ["-p", "per_package=2", "-p", "difficulty=false", "-p", "baseline.runs=2"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package with an extension in C, whose tests run in an environment only."""
    if shutil.which("cc") is None or not Path(sysconfig.get_path("include"), "Python.h").exists():
        pytest.skip("the package's extension needs a C compiler and Python's header files")
    files = {
        "setup.py": SETUP,
        "calm/__init__.py": "",
        "calm/_fast.c": FAST,
        "calm/lines.py": LINES,
        "tests/test_lines.py": TESTS.replace("{workspace}", "/workspace"),
    }
    return write_files(tmp_path_factory.mktemp("package") / "calm", files)


@pytest.fixture(scope="module")
def harvested(package: Path, cache: Path, index: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    del index
    out = tmp_path_factory.mktemp("set") / "set"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUMSHOE_CACHE", str(cache))
        assert main(["harvest", str(package), "--out", str(out), *OPTIONS]) == 0
    return out


def test_an_extension_is_part_of_the_tasks_and_imports_come_from_the_workspace(harvested: Path) -> None:
    assert list((harvested / "packages" / "calm" / "projects" / "calm" / "calm").glob("_fast*.so"))
    for _, oracle in load_tasks(str(harvested)):
        assert {"tests/test_lines.py::test_built", "tests/test_lines.py::test_installed"} <= {*oracle.pass_to_pass}


def test_a_set_that_was_copied_to_another_machine_passes_its_check(
    harvested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(harvested, tmp_path / "moved"))
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    assert main(["tasks", "check", str(moved), "--sandbox", "bubblewrap"]) == 2
    assert "is not on this machine: gumshoe harvest --rebuild" in capsys.readouterr().err
    assert main(["harvest", "--rebuild", str(moved)]) == 0
    (root,) = (tmp_path / "cache" / "environments").glob("*/root")
    assert list(root.glob("lib/*/site-packages/pytest/__pycache__/*.pyc"))  # Its runs compile nothing again.
    assert list(root.rglob("__pycache__/*-pytest-*.pyc"))  # Nor do they rewrite the plugins of pytest.
    assert main(["tasks", "check", str(moved), "--sandbox", "bubblewrap"]) == 0
    assert "2 of 2 tasks are proven" in capsys.readouterr().out


@pytest.mark.needs("docker")
def test_a_set_made_in_docker_passes_its_check_in_bubblewrap_and_the_other_way_round(
    harvested: Path, package: Path, tmp_path: Path
) -> None:
    if interpreters()[0].version[:2] != (3, 11):
        pytest.skip("the image's Python is 3.11")
    out = tmp_path / "set"
    assert main(["harvest", str(package), "--out", str(out), *OPTIONS, "-p", "sandbox.kind=docker"]) == 0
    for made, sandbox in ((out, SandboxConfig(kind="bubblewrap")), (harvested, SandboxConfig(kind="docker"))):
        ((task, oracle),) = load_tasks(str(made), limit=1)
        assert check_task(task, oracle, sandbox).problems == ()


def test_debug_runs_the_tests_in_the_environment_of_a_set(
    harvested: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = [("rewrite", {"path": "calm/lines.py", "start": 5, "code": "    y = 2 * x"}), ("submit", {})]
    rows = [
        {"text": "", "tool_calls": [{"id": str(number), "name": name, "arguments": arguments}]}
        for number, (name, arguments) in enumerate(calls)
    ]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = ["--environment", str(harvested / "packages" / "calm"), "-p", "sandbox.kind=bubblewrap"]
    options += ["-p", "policy.kind=scripted", "-p", f"policy.script={script}"]
    project = Path(shutil.copytree(harvested / "packages" / "calm" / "projects" / "calm", tmp_path / "calm"))
    assert main(["debug", str(project), *options]) == 0
    assert "the tests already pass (6 tests in" in capsys.readouterr().err
    (project / "calm" / "lines.py").write_text(LINES.replace("2 * x", "3 * x"))
    assert main(["debug", str(project), *options]) == 0
    shown = capsys.readouterr()
    assert "the tests pass after 2 steps" in shown.err
    assert "+    y = 2 * x" in shown.out
