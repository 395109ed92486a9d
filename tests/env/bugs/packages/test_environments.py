"""Environments of packages, built with pip's real index: which pytest is in them, byte code of tests, warm sandboxes.

The older pytest stamps byte code with the time of its source, the newer with its hash. One of the packages is installed
in place, so that a `.pth` file names a folder of the workspace.
"""

import contextlib
import importlib.util
import io
import json
import marshal
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.bugs.candidates import candidates
from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.judging import ProjectJudge
from gumshoe.env.bugs.packages.build_sandbox import BuildResult
from gumshoe.env.bugs.packages.environment import build_environment
from gumshoe.env.bugs.projects import Project, Suite
from gumshoe.env.diff import make_patch
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.sandboxes.staging import byte_code_archive, byte_code_place, is_byte_code_of_tests, keep_byte_code
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.verifier import verify
from gumshoe.env.verifier.check import compile_tests
from gumshoe.env.virtualenvs import Lock
from gumshoe.env.workspace import Workspace
from gumshoe.records import Oracle, Task, TestRun
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import NO_PLUGINS

CODE = "def double(x):\n    return 2 * x\n\n\ndef lowest(x, y):\n    return min(x, y)\n"
WRONG = CODE.replace("2 * x", "3 * x")
TESTS = """\
import json, sys
from shop import double, lowest

def test_double():
    with open("path.json", "w") as file:
        json.dump(sys.path, file)
    assert double(2) == 4

def test_lowest():
    assert lowest(3, 2) == 2
"""
EASY = "def test_double():\n    assert True\n"
PYPROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "shop"
version = "1"
[project.optional-dependencies]
test = ["pytest==4.6.11"]
[tool.setuptools.packages.find]
where = ["src"]
"""
OLD = {"shop.py": CODE, "requirements-test.txt": "pytest==7.4.4\npluggy==1.2.0\n"}
IN_PLACE = {"src/shop/__init__.py": CODE, "pyproject.toml": PYPROJECT}
EARLIER = 1_600_000_000
BUBBLEWRAP = SandboxConfig(kind="bubblewrap")
QUICK = SandboxConfig(kind="bubblewrap", env=NO_PLUGINS)

pytestmark = pytest.mark.needs("bubblewrap")


@dataclass(frozen=True)
class Package:
    """A package whose environment is built, and a task whose bug is in its file `code`."""

    root: Path
    code: str
    lock: Lock
    task: Task

    def with_files(self, overlay: Mapping[str, str | None]) -> Task:
        """The task with other files in its workspace."""
        return self.task.model_copy(
            update={"workspace": self.task.workspace.model_copy(update={"overlay": dict(overlay)})}
        )


def build(root: Path, files: dict[str, str]) -> Package:
    common = {"tests/test_shop.py": TESTS, "conftest.py": "import sys\nsys.path.insert(0, '.')\n"}
    write_files(root / "source", {**common, **files})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUMSHOE_CACHE", str(root / "cache"))
        built = build_environment(root / "source", root / "project", BuildConfig(python="3.11"), lambda text: None)
    code = next(iter(files))
    workspace = workspace_from_folder(root / "project", {code: WRONG})
    task = folder_task(root, workspace=workspace.model_copy(update={"environment": built.lock.name}))
    return Package(root, code, built.lock, task)


@pytest.fixture(scope="module")
def old(index: None, tmp_path_factory: pytest.TempPathFactory) -> Package:
    """A package that wants an older pytest."""
    return build(tmp_path_factory.mktemp("old"), OLD)


@pytest.fixture(scope="module")
def in_place(index: None, tmp_path_factory: pytest.TempPathFactory) -> Package:
    """A package with its code in `src` that wants a pytest which is too old for this Python."""
    return build(tmp_path_factory.mktemp("in-place"), IN_PLACE)


@pytest.fixture(params=["old", "in_place"])
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Package:
    """One of the packages, its cache without byte code of tests; the project's files are years old."""
    package: Package = request.getfixturevalue(request.param)
    monkeypatch.setenv("GUMSHOE_CACHE", str(package.root / "cache"))
    place = byte_code_place(package.task)
    assert place is not None
    place.unlink(missing_ok=True)
    for path in (package.root / "project").rglob("*.py"):
        os.utime(path, (EARLIER, EARLIER))
    return package


only_in_place = pytest.mark.parametrize("package", ["in_place"], indirect=True)


def kept(task: Task) -> dict[str, bytes]:
    archive = byte_code_archive(task)
    if archive is None:
        return {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {info.name: file.read() for info in tar if (file := tar.extractfile(info)) is not None}


def test_a_pinned_pytest_that_is_too_old_for_the_python_is_replaced(old: Package, in_place: Package) -> None:
    assert {"pytest==7.4.4", "pluggy==1.2.0"} <= set(old.lock.packages)
    (version,) = (name.partition("==")[2] for name in in_place.lock.packages if name.startswith("pytest=="))
    assert int(version.split(".")[0]) >= 7


@pytest.mark.parametrize("package", ["old"], indirect=True)
def test_bugs_are_judged_by_an_older_pytest(package: Package) -> None:
    project = Project("shop", package.root / "project", "", Suite(package.lock.name))
    with contextlib.closing(ProjectJudge(project, BUBBLEWRAP)) as judge:
        verdicts = judge.judge(list(candidates(CODE, 0, path=package.code)))
    statuses = {verdict.status for verdict in verdicts}
    assert "killed" in statuses
    assert statuses <= {"killed", "survived"}


def test_byte_code_of_tests_is_made_once_and_run_in_every_sandbox_but_not_in_verdicts(package: Package) -> None:
    """A verdict writes the tests that it varies anew, so what was made of the original ones is not for them."""
    task, place = package.task, byte_code_place(package.task)
    assert place is not None
    assert byte_code_archive(task) is None
    compile_tests([task, task], BUBBLEWRAP)
    made = place.stat().st_mtime_ns
    compile_tests([task], BUBBLEWRAP)
    assert place.stat().st_mtime_ns == made
    conftest, test = sorted(kept(task))
    assert conftest.startswith("__pycache__/conftest.")
    assert test.startswith("tests/__pycache__/test_shop.")
    with open_sandbox(task, BUBBLEWRAP, trusted=True) as sandbox:
        found = sorted(entry.path for entry in sandbox.walk() if is_byte_code_of_tests(entry.path))
        assert found == [conftest, test]
        assert sandbox.run(task.entrypoint, timeout=60).exit_code == 1
    easy = marshal.dumps(compile(EASY, "/workspace/tests/test_shop.py", "exec"))
    keep_byte_code(place, {test: kept(task)[test][:16] + easy})
    with open_sandbox(task, BUBBLEWRAP, trusted=True) as sandbox:
        assert sandbox.run(task.entrypoint, timeout=60).exit_code == 0
    gold = make_patch({package.code: (WRONG.encode(), CODE.encode())})
    oracle = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=("tests/test_shop.py::test_double",))
    assert not verify(task, oracle, "", BUBBLEWRAP, trusted=False).resolved


def test_a_test_file_that_differs_has_no_byte_code(package: Package) -> None:
    task = package.task
    compile_tests([task], BUBBLEWRAP)
    for changed in ({"tests/test_shop.py": TESTS}, {"tests/test_shop.py": None}, {"tests": None}):
        assert [name.partition(".")[0] for name in kept(package.with_files(changed))] == ["__pycache__/conftest"]
    test = package.root / "project" / "tests" / "test_shop.py"
    data = next(data for name, data in kept(task).items() if "test_shop" in name)
    if data[4:8] == b"\0\0\0\0":
        test.touch()
        assert "test_shop" not in str(list(kept(task)))
    else:
        assert data[8:16] == importlib.util.source_hash(test.read_bytes())


@only_in_place
def test_only_tests_that_pytest_runs_in_an_environment_have_byte_code(package: Package) -> None:
    unittest = package.task.model_copy(update={"entrypoint": ("python", "-m", "unittest")})
    space = package.task.workspace.model_copy(update={"environment": None})
    for other in (unittest, package.task.model_copy(update={"workspace": space})):
        assert byte_code_place(other) is None
        compile_tests([other], BUBBLEWRAP)
        assert byte_code_archive(other) is None
    assert not is_byte_code_of_tests("tests/__pycache__/shop.cpython-311.pyc")
    assert not is_byte_code_of_tests("tests/test_shop.cpython-311-pytest-9.0.pyc")


def warm_run(task: Task, config: SandboxConfig = QUICK) -> tuple[TestRun, list[str]]:
    """A run of the tests, and its import path."""
    with open_sandbox(task, config, trusted=True) as sandbox:
        return Workspace(task, sandbox).run_tests(warm=True), json.loads(sandbox.read_file("path.json"))


@only_in_place
def test_forks_of_a_test_server_find_a_package_that_is_installed_in_place(package: Package) -> None:
    """One that changes how the interpreter starts gets a fresh interpreter."""
    assert list(package.root.glob("cache/environments/*/root/lib/*/site-packages/*shop*.pth"))
    right, wrong = package.with_files({}), package.task
    fresh, fresh_path = warm_run(right, QUICK.model_copy(update={"test_server": False}))
    assert (fresh.passed, fresh.result.warm) == (True, False)
    for variant, passes in ((right, True), (wrong, False)):
        run, path = warm_run(variant)
        assert (run.passed, run.result.warm) == (passes, True)
        assert path == fresh_path
    changing = package.with_files({"src/sitecustomize.py": "import sys\nsys.path.append('/elsewhere')\n"})
    run, path = warm_run(changing)
    assert (run.passed, run.result.warm, path[-1]) == (True, False, "/elsewhere")
    assert "comes from the workspace" in str(run.result.cold)


UV_OUTPUT = """\
error: The build backend returned an error
  cause: Call to `setuptools.build_meta.get_requires_for_build_editable` failed (exit status: 1)

         [stderr]
         Traceback (most recent call last):
{}

hint: This usually indicates a problem with the package or the build environment.
"""


@pytest.mark.parametrize(
    "raised", ["RuntimeError: needs libfoo to be built", "error: command 'gcc' failed: No such file or directory"]
)
def test_a_failed_build_says_what_it_failed_with(raised: str) -> None:
    assert BuildResult(1, UV_OUTPUT.format(f"         {raised}")).why == raised
    unknown = "error: No solution found\n  cause: Because there is no shop, your requirements are unsatisfiable.\n"
    assert BuildResult(1, unknown).why == "Because there is no shop, your requirements are unsatisfiable."
