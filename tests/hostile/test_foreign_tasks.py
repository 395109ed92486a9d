"""What somebody else made stays in its bounds: task sets in their folder, and out of the `local` sandbox.

That one runs only what comes with Gumshoe, unless the config accepts that it does not isolate.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe.collect.run.control import Control
from gumshoe.env import DebugEnv, SandboxConfig, open_sandbox
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.judging import ProjectJudge
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.baseline import find_baseline
from gumshoe.env.bugs.projects import Project, Suite
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.env.verifier import grade, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.grader import find_flaky
from gumshoe.records import Oracle, Task, WorkspaceSpec
from support.folder_tasks import folder_task

LOCAL = SandboxConfig(kind="local")
REFUSED = "the local sandbox does not isolate"
Pair = tuple[Task, Oracle]


@pytest.fixture(scope="module")
def case() -> Pair:
    """A case of the casebook."""
    return load_tasks("casebook")[0]


@pytest.fixture
def witness(tmp_path: Path) -> Path:
    """A file that is made when anything of the attack runs on the host."""
    return tmp_path / "ran"


@pytest.fixture
def foreign(small_task: Task, witness: Path) -> Pair:
    """A task set's own repository and gold patch, both of which leave a file behind where they run."""
    attack = f"open({str(witness)!r}, 'w').close()\n"
    Path(str(small_task.workspace.path), "conftest.py").write_text(attack)
    patch = make_patch({"tests/conftest.py": (None, attack.encode())})
    return small_task.model_copy(update={"setup": (("touch", str(witness)),)}), Oracle(
        task_id="small", gold_patch=patch
    )


def _flaky(task: Task, oracle: Oracle, folder: Path) -> None:
    find_flaky([(task, oracle)], 1, LOCAL, folder / "flaky.jsonl", Control(), 1)


def _synth(task: Task, oracle: Oracle, folder: Path) -> None:
    ProjectJudge(Project("small", Path(str(task.workspace.path)), ""), LOCAL).close()


def _harvest(task: Task, oracle: Oracle, folder: Path) -> None:
    project = Path(str(task.workspace.path))
    find_baseline(PackageHarvest("small", HarvestConfig(sandbox=LOCAL), folder), project, Suite())


def _environment(task: Task, oracle: Oracle, folder: Path) -> None:
    DebugEnv(task, oracle=oracle, sandbox=LOCAL, trusted=True).reset(seed=0)


USERS: dict[str, Callable[[Task, Oracle, Path], object]] = {
    "open": lambda task, oracle, folder: open_sandbox(task, LOCAL, trusted=True),
    "environment": _environment,
    "verify": lambda task, oracle, folder: verify(task, oracle, oracle.gold_patch, LOCAL, trusted=True),
    "check": lambda task, oracle, folder: check_task(task, oracle, LOCAL),
    "flaky": _flaky,
    "synth": _synth,
    "harvest": _harvest,
}


@pytest.mark.parametrize("user", USERS)
def test_nothing_of_a_foreign_task_set_runs(user: str, foreign: Pair, witness: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=REFUSED) as caught:
        USERS[user](*foreign, tmp_path)
    assert "\n" not in str(caught.value)
    assert not witness.exists()


@pytest.mark.parametrize("user", ["verify", "check", "flaky"])
def test_a_foreign_answer_to_a_built_in_task_does_not_run(
    user: str, case: Pair, foreign: Pair, witness: Path, tmp_path: Path
) -> None:
    task, oracle = case
    with pytest.raises(ConfigError, match=REFUSED):
        USERS[user](task, oracle.model_copy(update={"gold_patch": foreign[1].gold_patch}), tmp_path)
    assert not witness.exists()


def test_a_patch_of_a_model_does_not_run(case: Pair, foreign: Pair, witness: Path) -> None:
    with pytest.raises(ConfigError, match=REFUSED):
        grade(*case, foreign[1].gold_patch, LOCAL)
    assert not witness.exists()


def test_a_case_of_the_casebook_runs(case: Pair) -> None:
    assert check_task(*case, LOCAL).problems == ()


@pytest.mark.parametrize(
    "change",
    [
        {"setup": (("true",),)},
        {"entrypoint": ("sh", "-c", "true")},
        {"debug_entrypoint": ("python", "-c", "0")},
        {"overlay": {"conftest.py": "0\n"}},
        {"activate": "export X=1"},
        {"path": "/"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_task_that_only_looks_built_in_is_not(change: dict[str, object], case: Pair) -> None:
    task, oracle = case
    assert is_built_in(task, oracle)
    assert is_built_in(task.model_copy(update={"id": "other", "problem_statement": "x"}), oracle)
    own = {name: value for name, value in change.items() if name in Task.model_fields}
    spec = task.workspace.model_copy(update={name: value for name, value in change.items() if name not in own})
    assert not is_built_in(task.model_copy(update={**own, "workspace": spec}))


# --- a task set that somebody else made reaches no file outside of its folder


def a_set(folder: Path, project: str) -> str:
    task = folder_task(folder, id="a", workspace=WorkspaceSpec(path=project))
    write_taskset(folder, [(task, Oracle(task_id="a", gold_patch=""))])
    return str(folder)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "key.txt").write_text("secret")
    return folder


@pytest.mark.parametrize(
    "project", ["../secret", "projects/../../secret", "{secret}", "/etc", ".", "casebook:../..", "casebook:"]
)
def test_a_path_that_leads_out_is_refused(project: str, secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", project.format(secret=secret))
    with pytest.raises(TaskError, match=r"is outside of|no project"):
        load_tasks(source)


def test_a_link_that_leads_out_is_refused(secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", "projects/p")
    (tmp_path / "set" / "projects").symlink_to(secret.parent)
    (tmp_path / "p").symlink_to(secret)
    with pytest.raises(TaskError, match="is outside of"):
        load_tasks(source)


def test_the_files_of_the_set_are_regular_files(secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", "projects/p")
    project = tmp_path / "set" / "projects" / "p"
    project.mkdir(parents=True)
    (project / "a.py").write_text("x = 1\n")
    ((task, _),) = load_tasks(source)
    assert task.workspace.path == str(project)
    (project / "leak").symlink_to(secret / "key.txt")
    ((linked, _),) = load_tasks(source)
    (secret / "key.txt").write_text("other")
    ((later, _),) = load_tasks(source)
    assert later.workspace.content == linked.workspace.content, "a link was followed out of the project"
