"""The repository as the agent may see it."""

from collections.abc import Generator
from pathlib import Path

import pytest

from gumshoe.env import Workspace, open_sandbox
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import TaskError, ToolFailure
from gumshoe.records import Task, WorkspaceSpec
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

FILES: dict[str, str | None] = {
    ".debugignore": "secret/\n*.key\n",
    ".debugreadonly": "tests/\n",
    ".gitignore": "*.log\n",
    "app.py": "VALUE = 1\n",
    "latin.txt": "",
    "secret/answer.py": "VALUE = 2\n",
    "tests/test_app.py": "from app import VALUE\n\n\ndef test_value():\n    assert VALUE == 2\n",
}


def make_task(folder: Path, **changes: object) -> Task:
    workspace = WorkspaceSpec(path=str(folder), overlay=FILES)
    task = folder_task(folder, workspace=workspace, ignore=("*.hidden",), readonly=("setup.cfg",))
    return task.model_copy(update=changes)


@pytest.fixture
def sandbox(tmp_path: Path) -> Generator[WardenSandbox]:
    with open_sandbox(make_task(tmp_path), CHEAPEST, trusted=True) as sandbox:
        yield sandbox


@pytest.fixture
def workspace(sandbox: WardenSandbox, tmp_path: Path) -> Workspace:
    sandbox.write_file("latin.txt", b"caf\xe9\r\n")
    return Workspace(make_task(tmp_path), sandbox)


def failure(call: object, *arguments: object) -> str:
    with pytest.raises(ToolFailure) as caught:
        call(*arguments)  # type: ignore[operator]  # pyright: ignore[reportCallIssue]
    return caught.value.kind


def test_hidden_paths_are_not_there(workspace: Workspace, sandbox: WardenSandbox) -> None:
    sandbox.write_file("x.hidden", b"")
    sandbox.run(["ln", "-s", "secret", "link"])
    assert [entry.path for entry in workspace.list(depth=1)] == [".gitignore", "app.py", "latin.txt", "link", "tests"]
    for path in ("secret/answer.py", "secret", "link/answer.py", "x.hidden", "my.key", ".git/config", ".debugignore"):
        assert failure(workspace.read_text, path) == "no_such_file"
        assert failure(workspace.write_text, path, "") == "no_such_file"
    assert failure(workspace.list, "secret") == "no_such_file"
    assert [match.path for match in workspace.grep("VALUE")[0]] == ["app.py", "tests/test_app.py", "tests/test_app.py"]


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "tests/../../x", "/"])
def test_paths_outside_are_refused(workspace: Workspace, path: str) -> None:
    assert failure(workspace.read_text, path) == "outside_workspace"
    assert failure(workspace.write_text, path, "") == "outside_workspace"


def test_the_ways_to_write_a_path(workspace: Workspace, sandbox: WardenSandbox) -> None:
    for path in ("app.py", "./app.py", "tests/../app.py", f"{sandbox.root}/app.py", " app.py "):
        assert workspace.read_text(path) == "VALUE = 1\n"
    assert workspace.list("") == workspace.list(".") == workspace.list(sandbox.root)


def test_editing(workspace: Workspace, sandbox: WardenSandbox) -> None:
    first = workspace.write_text("app.py", "VALUE = 3\n")
    assert (first.path, first.before, first.after) == ("app.py", "VALUE = 1\n", "VALUE = 3\n")
    second = workspace.write_text("./new/file.py", "x\n")
    assert (second.path, second.before, second.after) == ("new/file.py", None, "x\n")
    assert workspace.edits == [first, second]
    # Bytes that are not UTF-8 survive.
    text = workspace.read_text("latin.txt")
    workspace.write_text("latin.txt", text + "more\n")
    assert sandbox.read_file("latin.txt") == b"caf\xe9\r\nmore\n"
    assert failure(workspace.write_text, "app.py", "\ud800") == "bad_text"


def test_what_cannot_be_done_is_told(workspace: Workspace, sandbox: WardenSandbox) -> None:
    assert failure(workspace.read_text, "nowhere") == "no_such_file"
    assert failure(workspace.read_text, "tests") == "is_a_folder"
    assert failure(workspace.write_text, "tests", "") == "read_only"
    assert failure(workspace.list, "app.py") == "not_a_folder"
    assert failure(workspace.write_text, "app.py/x", "") == "not_a_folder"
    assert failure(workspace.write_text, "n" * 300, "") == "refused"
    assert failure(workspace.grep, "(") == "bad_pattern"
    sandbox.run(["mkfifo", "pipe"])
    assert failure(workspace.read_text, "pipe") == "not_allowed"
    assert workspace.is_readonly("setup.cfg")
    assert not workspace.is_readonly("app.py")
    for path in ("tests/test_app.py", "tests/conftest.py"):
        assert failure(workspace.write_text, path, "") == "read_only"


def test_running_the_tests(workspace: Workspace, sandbox: WardenSandbox) -> None:
    run = workspace.run_tests()
    assert not run.passed
    assert [(outcome.id, outcome.outcome) for outcome in run.outcomes] == [("tests/test_app.py::test_value", "failed")]
    sandbox.write_file("tests/test_app.py", b"def test_value(): pass\n")
    sandbox.write_file("tests/conftest.py", b"raise SystemExit(0)\n")
    assert not workspace.run_tests().passed
    assert [entry.path for entry in workspace.list("tests")] == ["tests/test_app.py"]
    workspace.write_text("app.py", "VALUE = 2\n")
    assert workspace.run_tests().passed


def test_without_tracebacks_the_outcomes_are_the_same(workspace: Workspace) -> None:
    whole, short = workspace.run_tests(), workspace.run_tests(tracebacks=False)
    assert "assert VALUE == 2" in whole.result.output
    assert "assert VALUE == 2" not in short.result.output
    assert short.outcomes == whole.outcomes
    assert "assert 1 == 2" in short.outcomes[0].message
    assert short.outcomes[0].frames[-1].line == 5


def test_outcomes_up_to_the_timeout_are_kept(sandbox: WardenSandbox, tmp_path: Path) -> None:
    sandbox.write_file("tests/test_slow.py", b"import time\ndef test_a(): pass\ndef test_b(): time.sleep(60)\n")
    task = make_task(tmp_path, entrypoint=("python", "-m", "pytest", "tests/test_slow.py"))
    run = Workspace(task, sandbox).run_tests(timeout=4)
    assert run.result.timed_out
    assert not run.passed
    assert [outcome.outcome for outcome in run.outcomes] == ["passed", "timed_out"]


def test_the_patch(workspace: Workspace, sandbox: WardenSandbox, tmp_path: Path) -> None:
    assert workspace.patch() == ""
    workspace.write_text("app.py", "VALUE = 2\n")
    for path in ("new.py", "debug.log", "secret/note", "tests/test_new.py", "__pycache__/x.pyc", "x.hidden"):
        sandbox.write_file(path, b"new\n")
    sandbox.remove_file("latin.txt")
    patch = workspace.patch()
    touched = [line.split()[2] for line in patch.splitlines() if line.startswith("diff --git")]
    assert touched == ["a/app.py", "a/latin.txt", "a/new.py"]
    assert "-VALUE = 1\n+VALUE = 2\n" in patch
    with pytest.raises(TaskError, match="gitignore pattern is invalid"):
        Workspace(make_task(tmp_path, ignore=("!",)), sandbox)


def test_the_patch_is_gits(sandbox: WardenSandbox, tmp_path: Path) -> None:
    """Modes, links, and a link in the place of a folder or the other way round: `git apply` makes the same tree."""
    before = "mkdir -p lib/pkg data; echo 1 > lib/pkg/a.py; ln -s lib/pkg pkg; touch run.sh data/x b.py; chmod +x b.py"
    after = (
        "chmod +x run.sh; ln -s run.sh other; rm pkg; mkdir pkg; echo 3 > pkg/a.py; rm -r data b.py; ln -s lib data; "
        "ln -s lib b.py; chmod +x lib/pkg/a.py; echo more >> lib/pkg/a.py; printf 'a\\0' > bin; chmod +x bin"
    )
    sandbox.run(["sh", "-c", before])
    tree = "git init -q . && git add -A && git write-tree"
    workspace = Workspace(make_task(tmp_path, readonly=(), ignore=()), sandbox)
    before = sandbox.snapshot()
    sandbox.run(["sh", "-c", after])
    patch = workspace.patch()
    wanted = sandbox.run(["sh", "-c", tree]).output
    sandbox.restore(before)
    applied = sandbox.run(["sh", "-c", f"git apply - && {tree}"], input=patch.encode())
    assert applied.output == wanted


@pytest.mark.parametrize("lines", [1_900_000, 14_000_000])
def test_a_word_at_the_end_of_a_large_file_is_found(lines: int, workspace: Workspace, sandbox: WardenSandbox) -> None:
    sandbox.run(
        ["sh", "-c", f"(yes line | head -n {lines}; echo needle) > large.txt; head -c 70000000 /dev/zero > zero"]
    )
    assert [(match.path, match.line) for match in workspace.grep("needle")[0]] == [("large.txt", lines + 1)]
