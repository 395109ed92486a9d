"""What hostile programs cannot do, nor reach of the host's kernel; not in the local sandbox, which does not isolate."""

import ctypes
import errno
import json
import platform
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, Workspace, open_sandbox
from gumshoe.env.sandboxes.bubblewrap import KEYCTL, with_own_session_keyring
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.host.seccomp import filter_program
from gumshoe.errors import SandboxError, ToolFailure
from gumshoe.records import ExecResult, Task
from support.folder_tasks import write_files

LIMITED = SandboxConfig(kind="docker", memory_mb=256, pids=64, disk_mb=32)
FORK_BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
DAEMONS = "import os\nwhile True:\n  try:\n    if os.fork(): os._exit(0)\n    os.setsid()\n  except OSError: pass"


def python(cell: WardenSandbox, code: str, timeout: float = 60) -> ExecResult:
    return cell.run(["python3", "-c", code], timeout=timeout)


def shell(cell: WardenSandbox, script: str, timeout: float = 60) -> ExecResult:
    return cell.run(["sh", "-c", script], timeout=timeout)


def process_count(cell: WardenSandbox) -> int:
    return int(python(cell, "import os; print(sum(name.isdigit() for name in os.listdir('/proc')))").output)


@pytest.mark.parametrize("bomb", [FORK_BOMB, DAEMONS], ids=["children", "daemons"])
def test_a_fork_bomb_is_bounded_and_dies(cell: WardenSandbox, bomb: str) -> None:
    before = process_count(cell)
    assert python(cell, bomb, timeout=2).timed_out or bomb == DAEMONS
    assert process_count(cell) == before


def test_a_memory_bomb_hits_the_limit(cell: WardenSandbox) -> None:
    result = python(cell, "held = []\nwhile True: held.append(b'x' * 10_000_000)")
    assert result.exit_code not in {0, None}


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
    with open_sandbox(setup, LIMITED, trusted=False) as sandbox:
        assert shell(sandbox, "head -c 20000000 /dev/zero > /var/tmp/some; sleep 2.5").exit_code == 0
        session = sandbox.open_session(["sh", "-c", "head -c 20000000 /dev/zero > /var/tmp/more; sleep 200"])
        with pytest.raises(SandboxError, match="more than its 32 MB of disk"):
            session.wait_message(180)
        with pytest.raises(SandboxError, match="killed with everything else"):
            session.wait_message(1)
        session.close()


def test_a_link_out_of_the_workspace_leads_nowhere(cell: WardenSandbox, small_task: Task) -> None:
    workspace = Workspace(small_task, cell)
    shell(cell, "ln -s /etc/passwd passwd; ln -s / top; mkdir sub; ln -s ../../etc sub/etc")
    for path in ("passwd", "top/etc/passwd", "sub/etc/passwd"):
        with pytest.raises(ToolFailure, match="leads out"):
            workspace.read_text(path)
        with pytest.raises(ToolFailure, match="leads out"):
            workspace.write_text(path, "root::0:0::/:/bin/sh\n")
    assert workspace.grep("root", ".")[0] == []


def test_environment_files_and_processes_of_the_host_are_not_there(
    cell: WardenSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GUMSHOE_SECRET", "hunter2")
    monkeypatch.setenv("HOME", "/home/hunter2")
    seen = shell(cell, "cat /proc/*/environ | tr '\\0' '\\n'; env").output
    assert "HOME=" in seen
    assert "hunter2" not in seen
    (tmp_path / "secret").write_text("hunter2")
    for path in (f"{tmp_path}/secret", f"/proc/1/root{tmp_path}/secret"):
        assert shell(cell, f"cat {path}").exit_code != 0
    if cell.backend == "bubblewrap":  # a container's root has an /etc/shadow of its own
        assert shell(cell, "cat /etc/shadow").exit_code != 0
    assert "pytest" not in shell(cell, "cat /proc/*/cmdline | tr '\\0' ' '").output
    assert process_count(cell) < 10


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


def test_the_warden_and_its_terminal_cannot_be_opened(cell: WardenSandbox) -> None:
    code = (
        "import glob, os\n"
        "terminals = ['/dev/console', '/dev/tty', *glob.glob('/dev/pts/[0-9]*')]\n"
        "for name in ['/proc/1/mem', '/proc/1/fd/0', *terminals]:\n"
        "    try: os.open(name, os.O_RDONLY | os.O_NOCTTY); print('opened', name)\n"
        "    except OSError: pass\n"
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


def test_read_only_tests_cannot_be_replaced(cell: WardenSandbox, small_task: Task) -> None:
    workspace = Workspace(small_task.model_copy(update={"readonly": ("/tests/",)}), cell)
    cell.write_file("app.py", b"def double(n):\n    return 0\n")
    assert not workspace.run_tests().passed
    shell(
        cell,
        "echo 'def test_double(): pass' > tests/test_app.py; "
        "rm -rf /gumshoe/state/support; touch /gumshoe/state/support",
    )
    assert [outcome.outcome for outcome in workspace.run_tests().outcomes] == ["failed"]
    with pytest.raises(ToolFailure, match="read-only"):
        workspace.write_text("tests/test_app.py", "")
    cell.write_file("app.py", b"import os\nos.system('echo > tests/test_app.py')\ndef double(n):\n    return 0\n")
    assert not workspace.run_tests().passed  # replaced while they ran
    assert not workspace.run_tests().passed
    assert "a/tests/" not in workspace.patch()


CALLS = {
    "ptrace": (101, 117), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "mount": (165, 40), "perf_event_open": (298, 241), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "setns": (308, 268), "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265), "kexec_load": (246, 104), "init_module": (175, 105), "fsopen": (430, 430),
    "pivot_root": (155, 41), "chroot": (161, 51), "umount2": (166, 39), "unshare": (272, 97),
}  # fmt: skip
FIRST_ARGUMENT = {"unshare": 0x10000000}  # a user namespace
PROBE = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, number, first in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(number, first, 0, 0, 0, 0, 0)
    print(name, result, ctypes.get_errno())
"""


def test_system_calls_that_tests_have_no_use_for_are_refused(cell: WardenSandbox) -> None:
    column = ("x86_64", "aarch64").index(platform.machine())
    wanted = [(name, numbers[column], FIRST_ARGUMENT.get(name, 0)) for name, numbers in CALLS.items()]
    result = cell.run(["python3", "-c", PROBE, json.dumps(wanted)])
    answers = [line.split() for line in result.output.splitlines()]
    assert [name for name, *_ in answers] == list(CALLS)
    assert {(code, int(number)) for _, code, number in answers} <= {("-1", errno.EPERM), ("-1", errno.ENOSYS)}


def test_sockets_that_lead_elsewhere_are_refused(cell: WardenSandbox) -> None:
    code = (
        "import socket\nfor kind in ((40, 1, 0), (17, 3, 0), (16, 3, 12), (38, 5, 0), (44, 3, 0)):\n"
        "    try: socket.socket(*kind); print('made', kind)\n    except OSError: pass\nprint('done')"
    )
    assert cell.run(["python3", "-c", code]).output == "done\n"


def test_what_tests_do_need_still_works(cell: WardenSandbox) -> None:
    code = (
        "import socket, subprocess, tempfile, threading, multiprocessing as m, os, mmap, signal, select, asyncio\n"
        "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')\n"
        "server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname()).close()\n"
        "socket.socketpair(); socket.getaddrinfo('localhost', 80); mmap.mmap(-1, 4096)\n"
        "select.epoll(); os.memfd_create('x')\n"
        "asyncio.run(asyncio.sleep(0)); socket.if_nameindex(); os.sched_getaffinity(0)\n"
        "queue = m.Queue(); process = m.Process(target=queue.put, args=('process',)); process.start()\n"
        "print(queue.get()); process.join(); print('done')"
    )
    assert cell.run(["python3", "-c", code]).output == "thread\nchild\nprocess\ndone\n"


@pytest.mark.skipif(platform.machine() not in KEYCTL, reason="no number for keyctl here")
def test_the_session_keyring_of_the_host_is_not_inherited() -> None:
    column = ("x86_64", "aarch64").index(platform.machine())
    search = (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        f"print(libc.syscall({KEYCTL[platform.machine()]}, 10, -3, b'user', b'gumshoe-secret', 0) > 0)"
    )

    def found_by_a_child() -> str:
        return subprocess.check_output([sys.executable, "-c", search], text=True).strip()

    def with_a_secret() -> tuple[str, str]:
        add_key = CALLS["add_key"][column]
        if ctypes.CDLL(None).syscall(add_key, b"user", b"gumshoe-secret", b"x", 1, -3) < 0:
            pytest.skip("this kernel gives no keys")
        return found_by_a_child(), with_own_session_keyring(found_by_a_child)

    assert with_own_session_keyring(with_a_secret) == ("True", "False")


@pytest.mark.needs("bubblewrap")
def test_only_the_named_distributions_can_be_imported(small_task: Task) -> None:
    code = "import importlib.util as u; print([n for n in ('pytest', 'gumshoe', 'pydantic') if u.find_spec(n)])"
    for packages, seen in ((("pytest",), "['pytest']\n"), ((), "[]\n")):
        config = SandboxConfig(kind="bubblewrap", packages=packages)
        with open_sandbox(small_task, config, trusted=False) as sandbox:
            assert sandbox.run([sandbox.python, "-c", code]).output == seen
            assert sandbox.run(["sh", "-c", "find / -name casebook -not -path '/proc/*' 2>/dev/null"]).output == ""


@pytest.mark.needs("bubblewrap")
def test_an_installed_package_keeps_its_casebook_outside(small_task: Task, tmp_path: Path) -> None:
    """As after `pip install gumshoe-debug`: the package lies in the site-packages of the environment that runs it."""
    environment = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python3*/site-packages"))
    write_files(site, {"gumshoe/env/casebook/answer/solution.py": "the answer"})
    code = (
        f"import sys\nsys.path += {[path for path in sys.path if path]!r}\n"
        "from gumshoe.env import SandboxConfig, open_sandbox\nfrom gumshoe.records import Task\n"
        "task = Task.model_validate_json(sys.stdin.read())\n"
        "with open_sandbox(task, SandboxConfig(kind='bubblewrap', packages=()), trusted=False) as sandbox:\n"
        "    found = sandbox.run(['sh', '-c', 'grep -rl \"the answer\" / --include=solution.py 2>/dev/null'])\n"
        "    print(found.output, sandbox.run([sandbox.python, '-c', 'print(6 * 7)']).output)\n"
    )
    argv = [str(environment / "bin" / "python"), "-c", code]
    done = subprocess.run(argv, input=small_task.model_dump_json(), capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["42"], "")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_made_for_every_processor_that_it_knows(machine: str) -> None:
    program = filter_program(machine)
    assert program is not None
    assert (len(program) % 8, len(program) // 8 < 4096, filter_program("z80")) == (0, True, None)


FIND_CARRIED = """
set -- /usr/share /usr/local /usr/lib/python3* $(python3 -c 'import sys; print(sys.base_prefix)')
find "$@" '(' -name '*-none-any.whl' -o -path '*/pip/_vendor/*' ')' -not -path '*/test_importlib/*' -type f -print 2>&1
"""


def test_python_brings_no_sources_of_packages_along(cell: WardenSandbox) -> None:
    found = cell.run(["sh", "-c", FIND_CARRIED]).output.splitlines()
    assert [line for line in found if not line.startswith("find: ")] == []
