"""What hostile programs cannot do, one property a test. After each attack the sandbox still works.

The local sandbox does not isolate and is not in this suite.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, Workspace, open_sandbox
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.errors import SandboxError, ToolFailure
from gumshoe.records import ExecResult, Task


def python(cell: WardenSandbox, code: str, timeout: float = 60) -> ExecResult:
    return cell.run(["python3", "-c", code], timeout=timeout)


def shell(cell: WardenSandbox, script: str, timeout: float = 60) -> ExecResult:
    return cell.run(["sh", "-c", script], timeout=timeout)


def process_count(cell: WardenSandbox) -> int:
    return int(python(cell, "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))").output)


def test_a_fork_bomb_is_bounded_and_dies(cell: WardenSandbox) -> None:
    before = process_count(cell)
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert python(cell, code, timeout=2).timed_out
    assert process_count(cell) == before


def test_a_fork_bomb_of_daemons_dies(cell: WardenSandbox) -> None:
    before = process_count(cell)
    code = "import os\nwhile True:\n  try:\n    if os.fork(): os._exit(0)\n    os.setsid()\n  except OSError: pass"
    python(cell, code, timeout=2)
    assert process_count(cell) == before


def test_a_memory_bomb_hits_the_limit(cell: WardenSandbox) -> None:
    result = python(cell, "held = []\nwhile True: held.append(b'x' * 10_000_000)")
    assert result.exit_code not in {0, None}
    assert not result.timed_out


@pytest.mark.parametrize("folder", ["/workspace", "/tmp", "/dev/shm", "/gumshoe"])
def test_a_disk_filler_hits_the_limit(cell: WardenSandbox, folder: str) -> None:
    fill = f"for i in 1 2 3 4 5 6; do head -c 30000000 /dev/zero > {folder}/f$i; done"
    result = shell(cell, f"{fill}; du -smx {folder}")
    assert "No space left on device" in result.output
    assert int(result.output.split()[-2]) <= 65
    shell(cell, f"rm -f {folder}/f?")


def test_nothing_can_be_written_elsewhere(cell: WardenSandbox) -> None:
    shell(cell, "for folder in / /usr /usr/bin /etc /root /home /var /opt; do echo > $folder/x; done")
    assert python(cell, "import glob; print(glob.glob('/x') + glob.glob('/*/x'))").output == "[]\n"


@pytest.mark.needs("docker")
def test_a_disk_that_can_be_written_is_watched(small_task: Task) -> None:
    setup = small_task.model_copy(update={"setup": (("sh", "-c", "echo > /installed"),)})
    with open_sandbox(
        setup, SandboxConfig(kind="docker", memory_mb=256, pids=64, disk_mb=32), trusted=False
    ) as sandbox:
        assert shell(sandbox, "head -c 20000000 /dev/zero > /var/tmp/some; sleep 2.5").exit_code == 0
        session = sandbox.open_session(["sh", "-c", "head -c 20000000 /dev/zero > /var/tmp/more; sleep 200"])
        with pytest.raises(SandboxError, match="more than its 32 MB of disk"):
            session.wait_message(180)
        with pytest.raises(SandboxError, match="killed with everything else"):
            session.wait_message(1)
        session.close()


def test_endless_output_is_cut(cell: WardenSandbox) -> None:
    result = shell(cell, "yes", timeout=1)
    assert result.timed_out
    assert result.truncated
    assert len(result.output) < 300_000


def test_a_link_out_of_the_workspace_leads_nowhere(cell: WardenSandbox, small_task: Task) -> None:
    workspace = Workspace(small_task, cell)
    shell(cell, "ln -s /etc/passwd passwd; ln -s / top; mkdir sub; ln -s ../../etc sub/etc")
    for path in ("passwd", "top/etc/passwd", "sub/etc/passwd"):
        with pytest.raises(ToolFailure, match="leads out"):
            workspace.read_text(path)
        with pytest.raises(ToolFailure, match="leads out"):
            workspace.write_text(path, "root::0:0::/:/bin/sh\n")
    assert workspace.grep("root", ".")[0] == []


def test_the_environment_of_the_host_is_not_there(cell: WardenSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUMSHOE_SECRET", "hunter2")
    monkeypatch.setenv("HOME", "/home/hunter2")
    seen = shell(cell, "cat /proc/*/environ | tr '\\0' '\\n'; env").output
    assert "HOME=" in seen
    assert "hunter2" not in seen


def test_the_files_of_the_host_are_not_there(cell: WardenSandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2")
    assert shell(cell, f"cat {tmp_path}/secret").exit_code != 0
    assert shell(cell, f"cat /proc/1/root{tmp_path}/secret").exit_code != 0
    if cell.backend == "bubblewrap":  # a container's root has an /etc/shadow of its own
        assert shell(cell, "cat /etc/shadow").exit_code != 0


def test_the_network_is_not_there(cell: WardenSandbox) -> None:
    with socket.create_server(("0.0.0.0", 0)) as server:
        port, address = server.getsockname()[1], "127.0.0.1"
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route, suppress(OSError):
            route.connect(("192.0.2.1", 9))  # Nothing is sent; the machine's own address is chosen.
            address = route.getsockname()[0]
        code = (
            "import socket, sys\n"
            f"for host in ('127.0.0.1', {address!r}, '1.1.1.1', '169.254.169.254'):\n"
            "    try: socket.create_connection((host, int(sys.argv[1])), 2)\n"
            "    except OSError: print('refused')"
        )
        result = cell.run(["python3", "-c", code, str(port)], timeout=60)
    assert result.output == "refused\n" * 4


def test_processes_of_the_host_are_not_there(cell: WardenSandbox) -> None:
    found = shell(cell, "cat /proc/*/cmdline | tr '\\0' ' '").output
    assert "pytest" not in found
    assert process_count(cell) < 10


def test_killing_everything_in_sight(cell: WardenSandbox) -> None:
    session = cell.open_session(["sleep", "1000"])
    for _ in range(5):
        shell(cell, "kill -9 -1")
        assert cell.run(["echo", "next"]).output == "next\n"
    code = (
        "import os, itertools\n"
        "for number, pid in itertools.product((9, 19, 15, 11), (1, os.getppid())):\n"
        "    try: os.kill(pid, number)\n"
        "    except OSError: pass"
    )
    python(cell, code)
    assert cell.run(["echo", "next"]).output == "next\n"
    assert session.wait_message(30).exit_code is not None


def test_the_warden_cannot_be_read_or_traced(cell: WardenSandbox) -> None:
    code = (
        "import os\n"
        "for name in ('mem', 'environ', 'fd/0', 'cwd/etc'):\n"
        "    try:\n"
        "        os.open('/proc/1/' + name, os.O_RDONLY); print('opened', name)\n"
        "    except OSError: print('refused')\n"
    )
    assert "opened mem" not in python(cell, code).output
    assert "opened fd" not in python(cell, code).output


def test_the_terminal_of_the_warden_cannot_be_opened(cell: WardenSandbox) -> None:
    code = (
        "import glob, os\n"
        "for name in ['/dev/console', '/dev/tty', *glob.glob('/dev/pts/[0-9]*')]:\n"
        "    try: os.write(os.open(name, os.O_RDWR | os.O_NOCTTY), b'forged'); print('opened', name)\n"
        "    except OSError: pass\n"
        "print('done')"
    )
    assert python(cell, code).output == "done\n"


def test_there_are_no_new_privileges(cell: WardenSandbox) -> None:
    status = shell(cell, "cat /proc/self/status").output
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    dangerous = sum(1 << number for number in (12, 13, 16, 17, 18, 19, 21, 22, 23, 25, 27))
    assert int(fields["CapEff"], 16) & dangerous == 0
    assert shell(cell, "mount -t tmpfs none /mnt").exit_code != 0


def test_deleting_the_workspace(cell: WardenSandbox, small_task: Task) -> None:
    workspace = Workspace(small_task, cell)
    shell(cell, "rm -rf /workspace /workspace/* /tmp/* /gumshoe/state/support")
    assert workspace.list() == []
    assert not workspace.run_tests().passed
    assert "deleted file" in workspace.patch()


def test_raw_terminal_escapes_and_forged_answers(cell: WardenSandbox) -> None:
    nasty = b'\x1b[2J\x1b]0;x\x07\x04\x03\x1a{"ok": 1}\r\n(Pdb) \x00\xff' * 100
    cell.write_file("nasty", nasty)
    assert cell.run(["cat", "nasty"]).output == nasty.decode("utf-8", "replace")
    session = cell.open_session(["sh", "-c", "cat nasty; stty sane 2>/dev/null; reset 2>/dev/null; echo end"])
    assert "end" in session.wait_message(60).output
    session.close()


def test_a_test_file_that_overwrites_itself_does_not_pass(cell: WardenSandbox, small_task: Task) -> None:
    guarded = small_task.model_copy(update={"readonly": ("/tests/",)})
    cell.write_file("app.py", b"def double(n):\n    return 0\n")
    workspace = Workspace(guarded, cell)
    assert not workspace.run_tests().passed
    shell(
        cell,
        "echo 'def test_double(): pass' > tests/test_app.py; "
        "rm -rf /gumshoe/state/support; touch /gumshoe/state/support",
    )
    run = workspace.run_tests()
    assert not run.passed
    assert [outcome.outcome for outcome in run.outcomes] == ["failed"]
    with pytest.raises(ToolFailure, match="read-only"):
        workspace.write_text("tests/test_app.py", "")
    assert workspace.patch() == ""


def test_a_test_that_replaces_read_only_files_while_it_runs(cell: WardenSandbox, small_task: Task) -> None:
    guarded = small_task.model_copy(update={"readonly": ("/tests/",)})
    cell.write_file("app.py", b"import os\nos.system('echo > tests/test_app.py')\ndef double(n):\n    return 0\n")
    workspace = Workspace(guarded, cell)
    assert not workspace.run_tests().passed
    assert not workspace.run_tests().passed
