"""What of the host's kernel and installation programs in a sandbox cannot reach."""

from __future__ import annotations

import ctypes
import errno
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.env import SandboxConfig, open_sandbox
from gumshoe.env.sandboxes.bubblewrap import KEYCTL, with_own_session_keyring
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.sandboxes.host.python_mounts import carried_packages, python_mounts
from gumshoe.env.sandboxes.host.seccomp import filter_program
from gumshoe.records import Task

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


@pytest.mark.parametrize(("family", "kind", "protocol"), [(40, 1, 0), (17, 3, 0), (16, 3, 12), (38, 5, 0), (44, 3, 0)])
def test_sockets_that_lead_elsewhere_are_refused(cell: WardenSandbox, family: int, kind: int, protocol: int) -> None:
    code = (
        f"import socket\ntry: socket.socket({family}, {kind}, {protocol}); print('made')\nexcept OSError: print('no')"
    )
    assert cell.run(["python3", "-c", code]).output == "no\n"


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
    search = (
        "import ctypes; libc = ctypes.CDLL(None)\n"
        f"print(libc.syscall({KEYCTL[platform.machine()]}, 10, -3, b'user', b'gumshoe-secret', 0) > 0)"
    )

    def found_by_a_child() -> str:
        return subprocess.run([sys.executable, "-c", search], capture_output=True, text=True, check=True).stdout.strip()

    def with_a_secret() -> tuple[str, str]:
        number = {"x86_64": 248, "aarch64": 217}[platform.machine()]
        if ctypes.CDLL(None).syscall(number, b"user", b"gumshoe-secret", b"x", 1, -3) < 0:
            pytest.skip("this kernel gives no keys")
        return found_by_a_child(), with_own_session_keyring(found_by_a_child)

    assert with_own_session_keyring(with_a_secret) == ("True", "False")


@pytest.mark.needs("bubblewrap")
def test_only_the_named_distributions_can_be_imported(small_task: Task) -> None:
    code = (
        "import importlib.util as u; print([n for n in ('pytest', 'gumshoe', 'pydantic', 'docker') if u.find_spec(n)])"
    )
    for packages, seen in ((("pytest",), "['pytest']\n"), ((), "[]\n")):
        config = SandboxConfig(kind="bubblewrap", packages=packages)
        with open_sandbox(small_task, config, trusted=False) as sandbox:
            assert sandbox.run([sandbox.python, "-c", code]).output == seen
            if packages:
                found = sandbox.run(["sh", "-c", "find / -name casebook -not -path '/proc/*' 2>/dev/null"])
                assert found.output == ""


@pytest.mark.needs("bubblewrap")
def test_an_installed_package_keeps_its_casebook_outside(small_task: Task, tmp_path: Path) -> None:
    """As after `pip install gumshoe-debug`: the package lies in the site-packages of the environment that runs it."""
    environment = tmp_path / "installed"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    site = next(environment.glob("lib/python3*/site-packages"))
    clean = site / "gumshoe" / "env" / "casebook" / "answer"
    clean.mkdir(parents=True)
    (clean / "solution.py").write_text("the answer")
    code = (
        "import sys\n"
        f"sys.path += {[path for path in sys.path if path]!r}\n"
        "from gumshoe.env import SandboxConfig, open_sandbox\n"
        "from gumshoe.records import Task\n"
        "task = Task.model_validate_json(sys.stdin.read())\n"
        "with open_sandbox(task, SandboxConfig(kind='bubblewrap', packages=()), trusted=False) as sandbox:\n"
        "    found = sandbox.run(['sh', '-c', 'grep -rl \"the answer\" / --include=solution.py 2>/dev/null'])\n"
        "    print(found.output, sandbox.run([sandbox.python, '-c', 'print(6 * 7)']).output)\n"
    )
    argv = [str(environment / "bin" / "python"), "-c", code]
    done = subprocess.run(argv, input=small_task.model_dump_json(), capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["42"], "")


def test_a_system_wide_installation_is_hidden_too() -> None:
    kinds = {path: kind for kind, path in python_mounts(["/"], ("pytest",))}
    assert all(kind == "hide" for path, kind in kinds.items() if path.endswith(("/site-packages", "/dist-packages")))


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_made_for_every_processor_that_it_knows(machine: str) -> None:
    program = filter_program(machine)
    assert program is not None
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096
    assert filter_program("z80") is None


FIND_CARRIED = """
set -- /usr/share /usr/local /usr/lib/python3* $(python3 -c 'import sys; print(sys.base_prefix)')
find "$@" '(' -name '*-none-any.whl' -o -path '*/pip/_vendor/*' ')' -not -path '*/test_importlib/*' -type f -print 2>&1
"""


def test_python_brings_no_sources_of_packages_along(cell: WardenSandbox) -> None:
    found = cell.run(["sh", "-c", FIND_CARRIED]).output.splitlines()
    assert [line for line in found if not line.startswith("find: ")] == []


def test_all_packages_that_a_python_carries_are_found(tmp_path: Path) -> None:
    folders = ["ensurepip/_bundled", "site-packages/pip/_vendor", "test/wheeldata"]
    carried = [*(f"lib/python3.9/{name}" for name in folders), "share/python-wheels"]
    for folder in carried:
        (tmp_path / folder).mkdir(parents=True)
    for name in ("setuptools-1-py3-none-any.whl", "support.py"):
        (tmp_path / "lib" / "python3.9" / "test" / name).touch()
    carried.append("lib/python3.9/test/setuptools-1-py3-none-any.whl")
    assert carried_packages(tmp_path) == sorted(f"{tmp_path}/{name}" for name in carried)
