"""What others have made stays within bounds: repositories, patches, figures, and task sets."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.run.control import Control
from gumshoe.collect.run.play import play_one
from gumshoe.env import DebugEnv, SandboxConfig, open_sandbox
from gumshoe.env.bugs.config import HarvestConfig
from gumshoe.env.bugs.judging import ProjectJudge
from gumshoe.env.bugs.packages import PackageHarvest
from gumshoe.env.bugs.packages.baseline import find_baseline
from gumshoe.env.bugs.projects import Project, Suite, copy_into_taskset, copy_tree, find_projects, sources_of
from gumshoe.env.diff import make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.casebook import is_built_in
from gumshoe.env.tasks.projects import digest_of
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.env.verifier import grade, verify
from gumshoe.env.verifier.check import check_task
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.grader import find_flaky
from gumshoe.eval.view.library import open_library
from gumshoe.eval.view.sources import GoldPatches
from gumshoe.records import Completion, Limits, Oracle, StopReason, Task, ToolCall, WorkspaceSpec
from support.collect.small_trajectories import trajectory
from support.folder_tasks import folder_task, write_files
from support.sandboxes.sandbox_backends import CHEAPEST
from support.small_projects import ADDING


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "calc", ADDING)


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.timeout(20)
def test_sparse_files_are_refused_at_once(project: Path) -> None:
    for number in range(4):
        sparse(project / f"{number}.bin", 7 << 20)
    with pytest.raises(TaskError, match="more than 10 MiB"):
        digest_of(project, limit=10 << 20)
    sparse(project / "huge.py", 8 << 30)
    (found,) = find_projects([str(project)])
    with pytest.raises(TaskError, match=r"project calc: .*huge\.py .*larger than"):
        sources_of(found, [])
    with pytest.raises(TaskError, match=r"more than 2048 MiB with huge\.py"):
        load_tasks("local", path=str(project))


@pytest.mark.timeout(20)
def test_a_pipe_is_no_part_of_a_repository(project: Path, tmp_path: Path) -> None:
    before = digest_of(project)
    os.mkfifo(project / "pipe")
    os.mkfifo(project / "pipe.py")
    assert digest_of(project) == before
    (project / "link.py").symlink_to("pipe.py")
    (found,) = find_projects([str(project)])
    assert set(sources_of(found, ["test_*"])) == {"calc.py"}
    copy_into_taskset(found, tmp_path / "set")
    names = {path.name for path in (tmp_path / "set" / "projects" / "calc").iterdir()}
    assert names == {"calc.py", "link.py", "test_calc.py"}


def test_links_in_a_circle_and_names_that_no_task_can_hold_get_no_bugs(project: Path, tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    (project / "self.py").symlink_to("self.py")
    (project / f"{odd}.py").write_text("x = 1\n")
    (found,) = find_projects([str(project)])
    assert set(sources_of(found, ["test_*"])) == {"calc.py"}
    copy_tree(project, tmp_path / "copy")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {f"{odd}.py", "calc.py", "test_calc.py"}
    renamed = str(project.rename(project.with_name(odd)))
    for refuse in (lambda: load_tasks("local", path=renamed), lambda: find_projects([renamed])):
        with pytest.raises(TaskError, match="the name is not utf-8 text: rename the folder"):
            refuse()


def test_a_digest_tells_contents_names_modes_and_links_apart(project: Path) -> None:
    seen = {digest_of(project)}
    for change in (
        lambda: (project / "calc.py").write_text("def add(a, b):\n    return b + a\n"),
        (project / "calc.py").touch,  # makes no difference
        lambda: (project / "calc.py").chmod(0o755),
        lambda: (project / "calc.py").rename(project / "sums.py"),
        lambda: (project / "link").symlink_to("sums.py"),
        (project / "empty.txt").touch,
    ):
        change()
        seen.add(digest_of(project))
    assert len(seen) == 6


MEMORY_MB = 512
"""What a patch may cost on top of an interpreter that holds its text."""
SHAPES = [
    ("BINARY + block(zeros(600 << 20), 600 << 20)", "too large"),
    ("BINARY + block(zeros(600 << 20), 1000)", "damaged"),
    ("BINARY + block(zeros(600 << 20), 0)", "damaged"),
    ("BINARY + block(zeros(60 << 20), 60 << 20)", "read"),
    ("BINARY + block(zeros(40 << 20), 40 << 20) + block(zeros(40 << 20), 40 << 20, 'delta')", "too large"),
    ("(BINARY + block(zeros(1 << 20), 1 << 20)) * 100", "too large"),
    ("BINARY + f'literal {10 ** 30}\\n\\n'", "without its full content"),
    ("BINARY + block(b'', 9) * 200_000", "damaged"),
    ("HEADER + DIFFER * 200 + BINARY + block(zeros(9 << 20), 9 << 20)", "without its"),
    ("('--- a/f\\n+++ b/f\\n' + DIFFER) * 9999 + block(zeros(9 << 20), 9 << 20)", "without its"),
    ("NEW + '@@ -0,0 +1,6000000 @@\\n' + '+x\\n' * 6_000_000", "too large"),
    ("NEW + f'@@ -0,0 +1,{MOST_LINES - 9} @@\\n' + '+x\\n' * (MOST_LINES - 9)", "read"),
    ("NEW + '@@ -0,0 +1 @@\\n+x\\n' * (MOST_LINES // 2 - 9)", "read|apply"),
    ("''.join(f'diff --git a/{n} b/{n}\\nold mode 100644\\nnew mode 100755\\n' for n in range(160_000))", "apply"),
    ("NEW + '@@ -0,0 +1 @@\\n+' + 'x' * (60 << 20) + '\\n'", "read"),
    ("NEW + '@@ -0,0 +1 @@\\n+' + '\\U0001f600' * (20 << 20) + '\\n'", "too large"),
    ("'x\\n' * 6_000_000", "too large"),
]
"""Patches, as Python that makes them, and words of which one is in what becomes of them."""
CHILD = """
import base64, functools, json, os, resource, sys, zlib
from pathlib import Path
from gumshoe.env.diff import apply_patch, drop_files, parse_patch
from gumshoe.env.diff.parse import LARGEST_PATCH, MOST_LINES
from gumshoe.errors import TaskError

HEADER = "diff --git a/f b/f\\nindex 1..2\\n"
BINARY = HEADER + "GIT binary patch\\n"
DIFFER = "Binary files a/f and b/f differ\\n"
NEW = HEADER + "--- /dev/null\\n+++ b/f\\n"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

def block(packed, size, kind="literal"):
    chunks = (packed[start:start + 52] for start in range(0, len(packed), 52))
    lines = "".join(LETTERS[len(chunk) - 1] + base64.b85encode(chunk, pad=True).decode() + "\\n" for chunk in chunks)
    return f"{kind} {size}\\n{lines}\\n"

@functools.cache
def zeros(size):
    packer = zlib.compressobj(1)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])

def read_within_limit(patch):
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = in_use + (MEMORY_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        apply_patch({"f": ""}, patch)
        drop_files(patch, ["f"])
        return "read"
    except TaskError as error:
        return str(error)

for shape in json.load(sys.stdin):
    patch = eval(shape)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            print(json.dumps(read_within_limit(patch)[:300]), flush=True)
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        print(json.dumps(f"killed: {status}"))
"""


def test_a_patch_is_read_or_refused_within_the_limit() -> None:
    asked = json.dumps([shape for shape, _ in SHAPES])
    argv = [sys.executable, "-c", CHILD.replace("MEMORY_MB", str(MEMORY_MB))]
    done = subprocess.run(argv, input=asked, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for (shape, outcome), line in zip(SHAPES, done.stdout.splitlines(), strict=True):
        assert any(word in json.loads(line) for word in outcome.split("|")), (shape, line)


NUMBERS = [2**63, 2**53, -(2**63), 10**299, 10**400, 1e308, float("inf"), -5, True, "7"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:12])
def test_the_viewer_takes_any_usage(number: object, tmp_path: Path) -> None:
    """A line or journal with a number that a record refuses is left out; what is shown is valid JSON."""
    usage = {"prompt_tokens": number, "completion_tokens": number, "cost_usd": number}
    line = trajectory("a").model_dump(mode="json") | {"usage": usage}
    (tmp_path / "trajectories.jsonl").write_text(f"{json.dumps(line)}\n")
    (tmp_path / "journal").mkdir()
    entries = [{"episode": {"id": "a#0.1"}}, {"completion": {"text": "", "usage": usage}}]
    (tmp_path / "journal" / "a.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with open_library([tmp_path], GoldPatches()) as library:
        library.catalog.refresh()
        answer = library.rows("", 0)
        (source,) = library.overview()["sources"]
    json.dumps(answer, allow_nan=False)
    assert len(answer["live"]) == len(answer["rows"]) == (source["problem"] is None)


@pytest.mark.needs("bubblewrap")
def test_calls_in_parallel_are_one_turn(small_task: Task) -> None:
    views = tuple(ToolCall(id=str(n), name="view", arguments={"path": "app.py"}) for n in range(5))
    turns = [Completion(text="", tool_calls=views), Completion(text="", tool_calls=(ToolCall(id="s", name="submit"),))]
    task = small_task.model_copy(update={"limits": Limits(steps=3)})
    agent, policy = make_agent(AgentConfig(kind="debug")), ScriptedPolicy(turns, trusted=False)
    found = play_one(EpisodeSpec(task, None, 0, 1), agent, policy, sandbox=CHEAPEST)
    assert found.stop is StopReason.SUBMITTED
    assert [len(step.observations) for step in found.steps] == [5, 1]


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
    task = small_task.model_copy(update={"setup": (("touch", str(witness)),)})
    return task, Oracle(task_id="small", gold_patch=patch)


USERS_OF_TASKS: dict[str, Callable[[Task, Oracle, Path], object]] = {
    "open": lambda task, oracle, folder: open_sandbox(task, LOCAL, trusted=True),
    "environment": lambda task, oracle, folder: DebugEnv(task, oracle=oracle, sandbox=LOCAL, trusted=True).reset(),
    "synth": lambda task, oracle, folder: ProjectJudge(Project("a", Path(str(task.workspace.path)), ""), LOCAL).close(),
    "harvest": lambda task, oracle, folder: find_baseline(
        PackageHarvest("small", HarvestConfig(sandbox=LOCAL), folder), Path(str(task.workspace.path)), Suite()
    ),
}
USERS_OF_ANSWERS: dict[str, Callable[[Task, Oracle, Path], object]] = {
    "verify": lambda task, oracle, folder: verify(task, oracle, oracle.gold_patch, LOCAL, trusted=True),
    "check": lambda task, oracle, folder: check_task(task, oracle, LOCAL),
    "flaky": lambda task, oracle, folder: find_flaky([(task, oracle)], 1, LOCAL, folder / "flaky", Control(), 1),
}


@pytest.mark.parametrize("user", [*USERS_OF_TASKS, *USERS_OF_ANSWERS])
def test_nothing_of_a_foreign_task_set_runs(user: str, foreign: Pair, witness: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=REFUSED) as caught:
        {**USERS_OF_TASKS, **USERS_OF_ANSWERS}[user](*foreign, tmp_path)
    assert "\n" not in str(caught.value)
    assert not witness.exists()


def test_a_foreign_answer_to_a_built_in_task_does_not_run(
    case: Pair, foreign: Pair, witness: Path, tmp_path: Path
) -> None:
    task, oracle = case
    answer = foreign[1].gold_patch
    for use in USERS_OF_ANSWERS.values():
        with pytest.raises(ConfigError, match=REFUSED):
            use(task, oracle.model_copy(update={"gold_patch": answer}), tmp_path)
    with pytest.raises(ConfigError, match=REFUSED):
        grade(task, oracle, answer, LOCAL)
    assert not witness.exists()


def test_a_case_of_the_casebook_runs(case: Pair) -> None:
    assert check_task(*case, LOCAL).problems == ()


@pytest.mark.parametrize(
    ("on_task", "on_workspace"),
    [
        ({"setup": (("true",),)}, {}),
        ({"entrypoint": ("sh", "-c", "true")}, {}),
        ({"debug_entrypoint": ("python", "-c", "0")}, {}),
        ({}, {"overlay": {"conftest.py": "0\n"}}),
        ({}, {"activate": "export X=1"}),
        ({}, {"path": "/"}),
    ],
)
def test_a_task_that_only_looks_built_in_is_not(
    on_task: dict[str, object], on_workspace: dict[str, object], case: Pair
) -> None:
    task, oracle = case
    assert is_built_in(task, oracle)
    assert is_built_in(task.model_copy(update={"id": "other", "problem_statement": "x"}), oracle)
    workspace = task.workspace.model_copy(update=on_workspace)
    assert not is_built_in(task.model_copy(update={**on_task, "workspace": workspace}))


# --- a task set that somebody else made reaches no file outside of its folder


def a_set(folder: Path, project: str) -> str:
    task = folder_task(folder, id="a", workspace=WorkspaceSpec(path=project))
    write_taskset(folder, [(task, Oracle(task_id="a", gold_patch=""))])
    return str(folder)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    return write_files(tmp_path / "secret", {"key.txt": "secret"})


@pytest.mark.parametrize(
    "project", ["../secret", "projects/../../secret", "{secret}", "/etc", ".", "casebook:../..", "casebook:"]
)
def test_a_path_that_leads_out_is_refused(project: str, secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", project.format(secret=secret))
    with pytest.raises(TaskError, match=r"is outside of|no project"):
        load_tasks(source)


def test_a_link_that_leads_out_is_refused_or_not_followed(secret: Path, tmp_path: Path) -> None:
    source = a_set(tmp_path / "set", "projects/p")
    (tmp_path / "p").symlink_to(secret)
    projects = tmp_path / "set" / "projects"
    projects.symlink_to(tmp_path)
    with pytest.raises(TaskError, match="is outside of"):
        load_tasks(source)
    projects.unlink()
    project = write_files(projects / "p", {"a.py": "x = 1\n"})
    (project / "leak").symlink_to(secret / "key.txt")
    ((linked, _),) = load_tasks(source)
    assert linked.workspace.path == str(project)
    (secret / "key.txt").write_text("other")
    ((later, _),) = load_tasks(source)
    assert later.workspace.content == linked.workspace.content, "a link was followed out of the project"
