"""Exported tasks are tasks of Harbor, and decide as our verifier does."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import uuid
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import peers
import pytest

from gumshoe.cli import main
from gumshoe.env.diff import apply_patch, parse_patch
from gumshoe.env.export import export_tasks
from gumshoe.env.harvest.lock import Lock
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, WorkspaceSpec

BASE = "gumshoe-python:latest"
CASES = ("casebook/ledger", "casebook/free_slots")

# Harbor is for Python 3.12, where `typing` has `override`.
READ = """\
import json, sys, typing, typing_extensions
typing.override = typing_extensions.override
from harbor.models.task.config import TaskConfig
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import task_has_any_shared_verifier
for folder in sys.argv[1:]:
    task = Task(folder)
    known = TaskConfig.model_validate_toml(task.paths.config_path.read_text()).model_dump_toml()
    print(json.dumps({
        "name": task.name,
        "valid": Task.is_valid_dir(folder),
        "solution": task.paths.discovered_solve_path is not None,
        "shared": task_has_any_shared_verifier(task.config),
        "instruction": task.instruction,
        "config": known,
    }))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "harbor"
    done = export_tasks(load_tasks("casebook", ids=CASES), "harbor", out, base_image=BASE)
    assert (done.count, done.refused) == (2, {})
    return out


def test_harbors_own_models_accept_the_folders(exported: Path, tmp_path: Path) -> None:
    peers.install(tmp_path, "harbor", "toml")
    folders = sorted(exported.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", READ, *map(str, folders)],
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    read = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["name"] for one in read] == ["gumshoe/casebook-free-slots", "gumshoe/casebook-ledger"]
    for one, folder in zip(read, folders, strict=True):
        assert (one["valid"], one["solution"], one["shared"]) == (True, True, False)
        assert "`python -m pytest -q` runs its tests" in one["instruction"]
        ours, theirs = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8")), tomllib.loads(one["config"])
        assert contains(theirs, ours), "Harbor passes over a field that we write"


def contains(whole: Any, part: Any) -> bool:
    """Whether every field of `part` is in `whole` with its value."""
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(contains, whole, part))
    return whole == part


class Trials:
    """Plays what Harbor does: an agent's container, what is collected from it, and the verifier's container."""

    def __init__(self, client: Any, image: str, folder: Path) -> None:
        self.client, self.image, self.folder = client, image, folder
        self.config = tomllib.loads((folder / "task.toml").read_text(encoding="utf-8"))

    def __call__(self, *agent: str, solve: bool = False) -> tuple[float, dict[str, Any]]:
        """The reward of an agent that runs these commands, and the verdict."""
        (collect,) = self.config["verifier"]["collect"]
        with self.container() as first:
            if solve:
                put(first, self.folder / "solution", "solution")
                run(first, "bash /solution/solve.sh")
            for command in (*agent, collect["command"]):
                run(first, command)
            artifacts = b"".join(first.get_archive("/logs/artifacts")[0])
        with self.container() as second:
            put(second, self.folder / "tests", "tests")
            run(second, "mkdir -p /logs")
            second.put_archive("/logs", artifacts)
            run(second, "bash /tests/test.sh")
            return float(read(second, "reward.txt")), json.loads(read(second, "verdict.json"))

    def container(self) -> Any:
        return kept(self.client.containers.run(self.image, ["sleep", "600"], detach=True, network_mode="none"))


class kept:  # noqa: N801 - a context manager
    def __init__(self, container: Any) -> None:
        self.container = container

    def __enter__(self) -> Any:
        return self.container

    def __exit__(self, *error: object) -> None:
        self.container.remove(force=True)


def run(container: Any, command: str) -> None:
    code, output = container.exec_run(["bash", "-c", command])
    assert code == 0, output.decode()


def put(container: Any, folder: Path, name: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(folder, arcname=name)
    container.put_archive("/", buffer.getvalue())


def read(container: Any, name: str) -> str:
    data = b"".join(container.get_archive(f"/logs/verifier/{name}")[0])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        file = archive.extractfile(name)
        assert file is not None
        return file.read().decode()


@pytest.fixture(scope="module")
def trials(exported: Path) -> Generator[Trials]:
    import docker

    folder = exported / "casebook-ledger"
    client = docker.from_env()
    name = f"gumshoe-test-{uuid.uuid4().hex[:8]}"
    client.images.build(path=str(folder / "environment"), tag=name, rm=True, network_mode="none")
    try:
        yield Trials(client, name, folder)
    finally:
        client.images.remove(name, force=True)
        client.close()


@pytest.mark.needs("docker")
def test_the_answer_earns_the_reward_and_nothing_done_earns_none(trials: Trials) -> None:
    reward, verdict = trials(solve=True)
    assert (reward, verdict["resolved"], verdict["problems"]) == (1.0, True, [])
    reward, verdict = trials()
    (_, oracle), *_ = load_tasks("casebook", ids=["casebook/ledger"])
    assert (reward, verdict["changed"], verdict["problems"]) == (0.0, [], [])
    assert verdict["fail_to_pass"] == list(oracle.fail_to_pass)


PASSES_ALL = """\
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
TESTS = """\
echo 'def test_nothing(): pass' > tests/test_ledger.py
mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt
"""
RUNNER = f"""\
cat > conftest.py <<'END'
{PASSES_ALL}END
mkdir pytest; touch pytest/__init__.py; echo 'raise SystemExit(0)' > pytest/__main__.py
printf '[tool.pytest.ini_options]\\naddopts = "--co"\\n' > pyproject.toml
echo 'import os; os._exit(0)' > sitecustomize.py
"""
EXIT = "echo 'import os; os._exit(0)' >> ledger/__init__.py"


@pytest.mark.needs("docker")
def test_cheats_earn_nothing(trials: Trials) -> None:
    """Each would make the tests of the agent's own container pass."""
    reward, verdict = trials(TESTS, RUNNER)
    assert (reward, verdict["changed"]) == (0.0, [])
    reward, verdict = trials(EXIT)
    assert (reward, verdict["changed"]) == (0.0, ["ledger/__init__.py"])
    assert verdict["problems"]


@pytest.mark.needs("docker")
def test_the_answer_counts_whatever_else_is_left_behind(trials: Trials) -> None:
    """What was put back is the original, so the answer holds beside it."""
    reward, verdict = trials(TESTS, RUNNER, "echo x > notes.txt", solve=True)
    assert (reward, verdict["problems"]) == (1.0, [])
    (_, oracle), *_ = load_tasks("casebook", ids=["casebook/ledger"])
    gold = {path for file in parse_patch(oracle.gold_patch) for path in file.paths}
    assert set(verdict["changed"]) == {"notes.txt", *gold}


Make = Callable[..., tuple[Task, Oracle]]


@pytest.fixture
def pair(tmp_path: Path) -> Make:
    (tmp_path / "repo" / "tests").mkdir(parents=True)
    (tmp_path / "repo" / "calc.py").write_text("def one():\n    return 2\n", encoding="utf-8")
    (tmp_path / "repo" / "tests" / "test_calc.py").write_text("old\n", encoding="utf-8")
    test_patch = "--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n@@ -1 +1 @@\n-old\n+new\n"

    def make(**changes: Any) -> tuple[Task, Oracle]:
        spec: dict[str, Any] = {"path": str(tmp_path / "repo"), **changes.pop("workspace", {})}
        answer: dict[str, Any] = {
            "gold_patch": "",
            "fail_to_pass": ("tests/test_calc.py::test_one",),
            **changes.pop("oracle", {}),
        }
        known: dict[str, Any] = {"id": "t/One Two", "source": "mine", "entrypoint": ("pytest",), **changes}
        task = Task(problem_statement="P", workspace=WorkspaceSpec(**spec), **known)
        return task, Oracle(task_id=task.id, test_patch=test_patch, **answer)

    return make


def test_hidden_tests_are_the_verifiers_alone(pair: Make, tmp_path: Path) -> None:
    setup = (("python", "-c", "print('x')"),)
    task, oracle = pair(regime="issue", setup=setup, workspace={"overlay": {"calc.py": None, "new.py": "x\n"}})
    assert export_tasks([(task, oracle)], "harbor", tmp_path / "out").count == 1
    folder = tmp_path / "out" / "t-one-two"
    repo = folder / "environment" / "repo"
    assert {path.relative_to(repo).as_posix() for path in repo.rglob("*.py")} == {"new.py", "tests/test_calc.py"}
    assert (repo / "tests" / "test_calc.py").read_text(encoding="utf-8") == "old\n"
    rules = json.loads((folder / "tests" / "task.json").read_text(encoding="utf-8"))
    assert rules["tests"] == apply_patch({"tests/test_calc.py": "old\n"}, oracle.test_patch)
    assert 'RUN ["python", "-c", "print(\'x\')"]' in (folder / "environment" / "Dockerfile").read_text(encoding="utf-8")
    assert not (folder / "solution").exists()


LOCK: dict[str, Any] = {
    "python": "3.11",
    "machine": "linux-x86_64",
    "packages": ["toolz==1.1.0"],
    "variables": {"MODE": "a b"},
    "files": {"mine.pth": "/workspace/src\n", "mine-1.dist-info/METADATA": "Name: mine\n"},
}


@pytest.mark.parametrize(("target", "place"), [("harbor", "/workspace"), ("swebench", "/testbed")])
def test_the_environment_of_a_harvested_task_is_installed_in_the_image(
    pair: Make, tmp_path: Path, target: str, place: str
) -> None:
    name = Lock.from_json(LOCK).name
    record = {"python": sys.executable, "version": [3, 11], "lock": LOCK}
    folder = tmp_path / "cache" / "environments" / name
    folder.mkdir(parents=True)
    (folder / "environment.json").write_text(json.dumps(record), encoding="utf-8")
    write_taskset(tmp_path / "set", [moved(tmp_path, *pair(workspace={"environment": name}))])
    done = subprocess.run(
        [sys.executable, "-m", "gumshoe", "tasks", "export", "set", "--to", target, "--out", "out"],
        cwd=tmp_path,
        env={**os.environ, "GUMSHOE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = (tmp_path / "out").rglob("Dockerfile")
    text = file.read_text(encoding="utf-8")
    assert text.startswith("FROM python:3.11\n")
    assert "ENV PATH=/environment/bin:$PATH VIRTUAL_ENV=/environment MODE='a b'" in text
    assert (file.parent / "environment" / "requirements.txt").read_text(encoding="utf-8") == "toolz==1.1.0\n"
    assert (file.parent / "environment" / "files" / "mine.pth").read_text(encoding="utf-8") == f"{place}/src\n"


def moved(folder: Path, task: Task, oracle: Oracle) -> tuple[Task, Oracle]:
    """The task with its project in a task set of that folder."""
    shutil.copytree(str(task.workspace.path), folder / "set" / "projects" / "mine")
    placed = task.workspace.model_copy(update={"path": "projects/mine"})
    return task.model_copy(update={"workspace": placed}), oracle


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"workspace": {"path": None, "image": "some/image"}}, "its repository is in the image some/image"),
        ({"workspace": {"activate": "source x"}}, "activated by a script"),
        ({"oracle": {"fail_to_pass": ()}}, "names no tests"),
        ({"workspace": {"environment": "0123456789abcdef"}}, "environment 0123456789abcdef is not on this machine"),
        ({"workspace": {"path": "nowhere"}}, "is not a folder on this machine"),
    ],
)
def test_what_cannot_be_exported_is_told(pair: Make, tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    good, bad = pair(), pair(**{"id": "t/bad", **changes})
    done = export_tasks([bad, good], "harbor", tmp_path / "out")
    assert done.count == 1
    assert why in done.refused["t/bad"]


def test_the_command_writes_a_set_and_says_what_is_wrong(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    argv = ["tasks", "export", "casebook", "--to", "harbor", "--limit", "1", "--out", str(tmp_path / "out")]
    assert main(argv) == 0
    assert capfd.readouterr().out.endswith("out: 1 of 1 tasks\n")
    assert main(argv) == 2
    assert "already exists" in capfd.readouterr().err
    rows = [{"instance_id": "a__b-1", "repo": "a/b", "base_commit": "c", "problem_statement": "P", "version": "1"}]
    rows[0] |= {"patch": "", "test_patch": "", "FAIL_TO_PASS": '["t.py::a"]', "PASS_TO_PASS": "[]"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    source = f"swebench:{tmp_path / 'rows.jsonl'}"
    assert main(["tasks", "export", source, "--to", "harbor", "--out", str(tmp_path / "rows")]) == 2
    error = capfd.readouterr().err
    assert "no task can be exported to harbor: a__b-1: its repository is in the image" in error
    assert not (tmp_path / "rows").exists()
