"""Files, searches and snapshots of every sandbox, whatever it is made of."""

import errno
import hashlib
import json
import os

import pytest

from gumshoe.env import SandboxConfig, Workspace
from gumshoe.env.patterns import Patterns
from gumshoe.env.sandboxes.channel import Link, package_files
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import SandboxError, ToolFailure
from gumshoe.records import Entry, Match, Task
from support.sandboxes.forked import ForkedBackend
from support.sandboxes.sandbox_backends import sh


def test_reading_and_writing(sandbox: WardenSandbox) -> None:
    data = os.urandom(3_000_000)
    sandbox.write_file("new/deep/file.bin", data)
    assert sandbox.read_file(f"{sandbox.root}/new/deep/file.bin") == data
    sandbox.remove_file("new/deep/file.bin")
    with pytest.raises(FileNotFoundError):
        sandbox.read_file("new/deep/file.bin")
    path = f"{sandbox.state}/note"
    sandbox.write_file(path, b"ours", inside=False)
    assert sandbox.read_file(path, inside=False) == b"ours"
    sandbox.remove_file(path, inside=False)


def test_writing_keeps_modes_and_links_and_leaves_nothing_beside(sandbox: WardenSandbox) -> None:
    sandbox.write_file("tool", b"#!/bin/sh\n", mode=0o755)
    sandbox.write_file("tool", b"#!/bin/sh\necho ran\n")
    assert sandbox.run(["./tool"]).output == "ran\n"
    assert [entry.path for entry in sandbox.walk() if "gumshoe" in entry.path] == []
    sh(sandbox, "ln -s app.py link.py")
    sandbox.write_file("link.py", b"changed")
    assert sandbox.read_file("app.py") == b"changed"
    assert sandbox.real_path("link.py") == "app.py"
    sandbox.remove_file("link.py")
    assert sandbox.read_file("app.py") == b"changed"


@pytest.mark.parametrize("path", ["../x", "/etc/hostname", "pkg/../../x", "out/x", "out"])
def test_paths_that_lead_out_are_refused(sandbox: WardenSandbox, path: str) -> None:
    sh(sandbox, "ln -s / out")
    for access in (sandbox.read_file, lambda path: sandbox.write_file(path, b""), sandbox.walk):
        with pytest.raises(PermissionError, match="leads out"):
            access(path)


@pytest.mark.parametrize(
    ("access", "path", "error", "message"),
    [
        ("read_file", "pkg", IsADirectoryError, None),
        ("write_file", "pkg", IsADirectoryError, None),
        ("remove_file", "pkg", IsADirectoryError, None),
        ("walk", "app.py", NotADirectoryError, None),
        ("walk", "nowhere", FileNotFoundError, None),
        ("grep", "nowhere", FileNotFoundError, None),
        ("read_file", "nul\0byte", FileNotFoundError, None),
        ("read_file", "pipe", PermissionError, "not a regular file"),
        ("read_file", "loop", OSError, os.strerror(errno.ELOOP)),
    ],
)
def test_what_the_file_system_answers(
    sandbox: WardenSandbox, access: str, path: str, error: type[OSError], message: str | None
) -> None:
    sh(sandbox, "mkfifo pipe; ln -s loop loop")
    arguments = {"write_file": (path, b""), "grep": ("x", path)}.get(access, (path,))
    with pytest.raises(error, match=message):
        getattr(sandbox, access)(*arguments)


def test_walking(sandbox: WardenSandbox) -> None:
    sh(sandbox, "mkfifo pkg/pipe; ln -s .. pkg/up")
    found = sandbox.walk()
    assert found == [
        Entry(path="app.py", kind="file", size=32),
        Entry(path="pkg", kind="dir"),
        Entry(path="pkg/core.py", kind="file", size=26),
        Entry(path="pkg/pipe", kind="other"),
        Entry(path="pkg/up", kind="link"),
        Entry(path="test_app.py", kind="file", size=70),
    ]
    assert sandbox.walk(depth=1) == [entry for entry in found if "/" not in entry.path]
    assert sandbox.walk("pkg") == [entry for entry in found if entry.path.startswith("pkg/")]
    sh(sandbox, "mkdir -p build/in a/build; touch build/in/x a/build.txt notes.log keep.log")
    ignore = Patterns(["build/", "*.log", "!keep.log", "/pkg"]).pairs
    shown = ["a", "a/build.txt", "app.py", "keep.log", "test_app.py"]
    assert [entry.path for entry in sandbox.walk(ignore=ignore)] == shown


@pytest.mark.parametrize(
    "harm",
    [
        "echo 'import os' >> gumshoe_inside/runs/outcomes.py; echo x > json.py; mkdir more; touch more/x",
        "rm gumshoe_inside/__main__.py; ln -s /etc/passwd gumshoe_inside/__main__.py",
        "cd gumshoe_inside; rm -r __main__.py runs; mkdir __main__.py; touch __main__.py/x runs new.py",
        "cd gumshoe_inside; mv debugger moved; ln -s moved debugger",
        "mv $PWD $PWD.away; ln -s $PWD.away $PWD",
        "cd gumshoe_inside; chmod 000 __main__.py runs; chmod 000 . ..",
        "rm -rf $PWD; touch $PWD",
    ],
)
def test_our_modules_are_put_back(sandbox: WardenSandbox, harm: str) -> None:
    sandbox.run(["sh", "-c", f"cd {sandbox.support}; {harm}"])
    sandbox.prepare_support()
    looked = (
        "import hashlib, json, os, pathlib, sys\n"
        "os.chdir(sys.argv[1])\n"
        "files = [path for path in pathlib.Path().rglob('*') if not path.is_dir() or not any(path.iterdir())]\n"
        "print(json.dumps({str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}))"
    )
    seen = sandbox.run([sandbox.python, "-I", "-c", looked, sandbox.support])
    expected = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in package_files().items()}
    assert json.loads(seen.output) == expected
    assert sandbox.run(["test", "-L", sandbox.support]).exit_code == 1


def test_searching(sandbox: WardenSandbox) -> None:
    assert sandbox.grep(r"^def \w+", "app.py") == ([Match(path="app.py", line=1, text="def double(n):")], False)
    assert sandbox.grep("NAME", "pkg/core.py")[0][1] == Match(path="pkg/core.py", line=2, text="print(NAME)")
    assert sandbox.grep("name", "pkg")[0] == []
    assert len(sandbox.grep("(?i)name", "pkg")[0]) == 2
    assert sandbox.grep("double", limit=1) == ([Match(path="app.py", line=1, text="def double(n):")], True)
    assert sandbox.grep("double", ignore=Patterns(["app.py"]).pairs)[0][0].path == "test_app.py"
    sandbox.write_file("mixed.txt", b"one\r\ntwo\nlast \xff")
    sandbox.write_file("binary", b"two\0two")
    assert sandbox.grep("one$", "mixed.txt")[0] == [Match(path="mixed.txt", line=1, text="one")]
    assert sandbox.grep(r"\Atwo\Z")[0] == [Match(path="mixed.txt", line=2, text="two")]
    assert sandbox.grep("two", "binary")[0] == []
    assert sandbox.grep("last", "mixed.txt")[0][0].text == "last \ufffd"
    with pytest.raises(ValueError, match="unterminated"):
        sandbox.grep("(")


def test_a_search_that_never_ends_is_given_up(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gumshoe.env.inside.warden.files.TIME_LIMIT_S", 0.2)  # of the warden that is forked from here
    with WardenSandbox(Link(ForkedBackend(SandboxConfig(kind="local")), 1 << 18)) as sandbox:
        sandbox.write_file("long.txt", b"a" * 5000 + b"!")
        with pytest.raises(ToolFailure, match="longer than"):
            Workspace(task, sandbox).grep("(a+)+$", "long.txt")
        assert sandbox.grep("a!", "long.txt")[0][0].line == 1


def test_a_snapshot_brings_everything_back(sandbox: WardenSandbox) -> None:
    sh(sandbox, "ln -s app.py link; mkdir empty; printf 'bin\\000' > data; chmod 755 data; mkfifo pipe")
    before = [entry for entry in sandbox.walk() if entry.kind != "other"]
    name = sandbox.snapshot()
    assert sandbox.changes(name) == {}
    sh(sandbox, "rm -rf pkg empty link data pipe; mkdir data; ln -s / pkg; echo x > app.py; echo n > new; mkdir -p n/m")
    sandbox.restore(name)
    assert [entry for entry in sandbox.walk() if entry.kind != "other"] == before
    assert sandbox.changes(name) == {}
    assert sandbox.read_file("data") == b"bin\0"
    assert sandbox.real_path("link") == "app.py"
    assert sh(sandbox, "test -x data && echo executable") == "executable\n"


def test_changes(sandbox: WardenSandbox) -> None:
    name = sandbox.snapshot()
    sandbox.write_file("app.py", b"changed")
    sandbox.write_file("new/file", b"\0")
    sh(sandbox, "rm pkg/core.py; ln -s app.py pkg/core.py; mkdir hidden; echo h > hidden/file")
    assert sandbox.changes(name, ignore=Patterns(["hidden/"]).pairs) == {
        "app.py": (b"def double(n):\n    return n + n\n", b"changed"),
        "new/file": (None, b"\0"),
        "pkg/core.py": (b"NAME = 'core'\nprint(NAME)\n", b"app.py"),
    }
    assert sandbox.changes(name, ignore=Patterns(["*"]).pairs) == {}
    # One that keeps size and time.
    name = sandbox.snapshot()
    sh(sandbox, "touch -r test_app.py stamp; sed -i s/double/triple/ test_app.py; touch -r stamp test_app.py; rm stamp")
    assert list(sandbox.changes(name)) == ["test_app.py"]


def test_restoring_only_some_paths_and_a_root_that_was_emptied(sandbox: WardenSandbox) -> None:
    name = sandbox.snapshot()
    sh(sandbox, "echo x > app.py; echo x > test_app.py; echo x > test_new.py; rm -r pkg")
    sandbox.restore(name, only=Patterns(["test_*.py", "pkg/"]).pairs)
    assert sorted(sandbox.changes(name)) == ["app.py"]
    assert sh(sandbox, "ls") == "app.py\npkg\ntest_app.py\n"
    sh(sandbox, f"rm -rf {sandbox.root}/* {sandbox.root}")
    sandbox.restore(name)
    assert sandbox.changes(name) == {}


def test_what_a_snapshot_keeps_cannot_be_reached(sandbox: WardenSandbox) -> None:
    name = sandbox.snapshot()
    shown = sh(sandbox, f"rm -rf {sandbox.state}/*; find {sandbox.state} -type f; echo x > app.py")
    assert shown == ""
    sandbox.restore(name)
    assert sandbox.changes(name) == {}
    with pytest.raises(SandboxError, match="no such snapshot"):
        sandbox.restore("0" * 64)


def test_restoring_touches_only_what_differs(sandbox: WardenSandbox) -> None:
    name = sandbox.snapshot()
    sh(sandbox, "echo x > app.py; touch pkg/core.py; chmod 600 test_app.py; mkdir more; echo > more/x")
    moment = f"{sandbox.state}/moment"
    sh(sandbox, f"sleep 0.05; touch {moment}; sleep 0.05")
    sandbox.restore(name)
    touched = sh(sandbox, f"find . -type f -newercm {moment} | sort; rm {moment}")
    assert touched == "./app.py\n./pkg/core.py\n./test_app.py\n"
    before = sh(sandbox, "stat -c %Z pkg/core.py app.py test_app.py pkg")
    sandbox.restore(name)
    assert sh(sandbox, "stat -c %Z pkg/core.py app.py test_app.py pkg") == before


@pytest.mark.parametrize(
    "harm",
    [
        "rm -rf pkg; echo > pkg",
        "rm -rf pkg; ln -s / pkg",
        "chmod 000 pkg; chmod 000 app.py",
        "rm -rf pkg; mkdir -p pkg/core.py/in/it; chmod 000 pkg/core.py/in",
        "rm -rf pkg; mkfifo pkg; rm app.py; mkdir app.py; ln -s app.py app.py/app.py",
        "mkdir -p a/b; touch a/b/c; chmod 555 a/b; chmod 000 a",
        "rm -rf .[!.]* *; cd /; rmdir $OLDPWD; echo > $OLDPWD",
    ],
)
def test_a_wrecked_workspace_is_put_back(sandbox: WardenSandbox, harm: str) -> None:
    name = sandbox.snapshot()
    before = sandbox.walk()
    for only in (["pkg/", "app.py", "a/"], ["/pkg/core.py"], None):
        sh(sandbox, harm)
        sandbox.changes(name)
        if only is not None:
            sandbox.restore(name, only=Patterns(only).pairs)
            assert sandbox.read_file("pkg/core.py") == b"NAME = 'core'\nprint(NAME)\n"
        sandbox.restore(name)
        assert sandbox.walk() == before
        assert sandbox.changes(name) == {}


def test_a_folder_that_is_deeper_than_any_path_is_removed(sandbox: WardenSandbox) -> None:
    name = sandbox.snapshot()
    for letters, levels in ((1, 1500), (200, 2000)):
        code = f"import os\nfor _ in range({levels}):\n    os.mkdir('d' * {letters}); os.chdir('d' * {letters})"
        assert sandbox.run([sandbox.python, "-c", code], timeout=60).exit_code == 0
    assert len(sandbox.walk("d")) > 1000
    sandbox.restore(name)
    assert [entry.path for entry in sandbox.walk() if entry.kind == "dir"] == ["pkg"]
