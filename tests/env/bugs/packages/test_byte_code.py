"""The byte code of a package's tests, made once and laid into the sandboxes of its tasks."""

from __future__ import annotations

import importlib.util
import io
import marshal
import os
import tarfile
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig
from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.environment import build_environment
from gumshoe.env.diff import make_patch
from gumshoe.env.sandboxes.byte_code import byte_code_archive, is_of_tests, keep_byte_code, place_of
from gumshoe.env.sandboxes.compiling import compile_tests
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.projects import workspace_from_folder
from gumshoe.env.verifier import verify
from gumshoe.records import Oracle, Task

CODE = "def double(x):\n    return 2 * x\n"
WRONG = "def double(x):\n    return 3 * x\n"
TESTS = "from shop import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
EASY = "def test_double():\n    assert True\n"
EARLIER = 1_600_000_000
BUBBLEWRAP = SandboxConfig(kind="bubblewrap")
ORACLE = Oracle(
    task_id="shop",
    gold_patch=make_patch({"shop.py": (WRONG.encode(), CODE.encode())}),
    fail_to_pass=("tests/test_shop.py::test_double",),
)

pytestmark = pytest.mark.needs("bubblewrap")


@pytest.fixture(scope="module", params=["pytest==7.4.4", "pytest"])
def task(request: pytest.FixtureRequest, index: None, tmp_path_factory: pytest.TempPathFactory) -> Task:
    """A task with a bug; the older pytest stamps byte code with the time of its source, the newer with its hash."""
    del index
    folder = tmp_path_factory.mktemp("package")
    (folder / "source" / "tests").mkdir(parents=True)
    (folder / "source" / "shop.py").write_text(CODE)
    (folder / "source" / "tests" / "test_shop.py").write_text(TESTS)
    (folder / "source" / "conftest.py").write_text("import sys\nsys.path.insert(0, '.')\n")
    (folder / "source" / "requirements-test.txt").write_text(f"{request.param}\n")
    build = BuildConfig(python="3.11")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GUMSHOE_CACHE", str(folder / "cache"))
        built = build_environment(folder / "source", folder / "project", build, lambda text: None)
    workspace = workspace_from_folder(folder / "project", {"shop.py": WRONG})
    return Task(
        id="shop",
        source="synth",
        problem_statement="",
        workspace=workspace.model_copy(update={"environment": built.lock.name}),
        entrypoint=("python", "-m", "pytest", "-q"),
    )


@pytest.fixture(autouse=True)
def own_cache(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache with the task's environment, without byte code; the project's files are years old."""
    project = Path(str(task.workspace.path))
    monkeypatch.setenv("GUMSHOE_CACHE", str(project.parent / "cache"))
    place = place_of(task)
    assert place is not None
    place.unlink(missing_ok=True)
    for path in project.rglob("*.py"):
        os.utime(path, (EARLIER, EARLIER))


def kept(task: Task) -> dict[str, bytes]:
    archive = byte_code_archive(task)
    if archive is None:
        return {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {info.name: file.read() for info in tar if (file := tar.extractfile(info)) is not None}


def test_it_is_made_once_and_is_there_in_every_sandbox(task: Task) -> None:
    assert byte_code_archive(task) is None
    compile_tests([task, task], BUBBLEWRAP)
    place = place_of(task)
    assert place is not None
    made = place.stat().st_mtime_ns
    compile_tests([task], BUBBLEWRAP)
    assert place.stat().st_mtime_ns == made
    names = sorted(kept(task))
    assert [name.partition(".")[0] for name in names] == ["__pycache__/conftest", "tests/__pycache__/test_shop"]
    with open_sandbox(task, BUBBLEWRAP, trusted=True) as sandbox:
        assert sorted(entry.path for entry in sandbox.walk() if is_of_tests(entry.path)) == names
        assert sandbox.run(task.entrypoint, timeout=60).exit_code == 1
    assert verify(task, ORACLE, ORACLE.gold_patch, BUBBLEWRAP, trusted=False).resolved
    assert not verify(task, ORACLE, "", BUBBLEWRAP, trusted=False).resolved


def test_it_is_what_pytest_runs_in_sandboxes_but_not_in_verdicts(task: Task) -> None:
    """A verdict writes the tests that it varies anew, so what was made of the original ones is not for them."""
    compile_tests([task], BUBBLEWRAP)
    (name,) = [name for name in kept(task) if "test_shop" in name]
    easy = marshal.dumps(compile(EASY, "/workspace/tests/test_shop.py", "exec"))
    place = place_of(task)
    assert place is not None
    keep_byte_code(place, {name: kept(task)[name][:16] + easy})
    with open_sandbox(task, BUBBLEWRAP, trusted=True) as sandbox:
        assert sandbox.run(task.entrypoint, timeout=60).exit_code == 0
    assert not verify(task, ORACLE, "", BUBBLEWRAP, trusted=False).resolved


def test_a_test_file_that_differs_has_none(task: Task) -> None:
    compile_tests([task], BUBBLEWRAP)
    overlays: list[dict[str, str | None]] = [
        {"tests/test_shop.py": TESTS},
        {"tests/test_shop.py": None},
        {"tests": None},
    ]
    for overlay in overlays:
        changed = task.model_copy(update={"workspace": task.workspace.model_copy(update={"overlay": overlay})})
        assert [name.partition(".")[0] for name in kept(changed)] == ["__pycache__/conftest"]
    test = Path(str(task.workspace.path), "tests", "test_shop.py")
    data = next(data for name, data in kept(task).items() if "test_shop" in name)
    if data[4:8] == b"\0\0\0\0":
        test.touch()
        assert "test_shop" not in str(list(kept(task)))
    else:
        assert data[8:16] == importlib.util.source_hash(test.read_bytes())


def test_only_tests_that_pytest_runs_in_an_environment_have_any(task: Task) -> None:
    unittest = task.model_copy(update={"entrypoint": ("python", "-m", "unittest")})
    bare = task.model_copy(update={"workspace": task.workspace.model_copy(update={"environment": None})})
    for other in (unittest, bare):
        assert place_of(other) is None
        compile_tests([other], BUBBLEWRAP)
        assert byte_code_archive(other) is None
    assert not is_of_tests("tests/__pycache__/shop.cpython-311.pyc")
    assert not is_of_tests("tests/test_shop.cpython-311-pytest-9.0.pyc")
