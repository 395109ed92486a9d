"""The build sandbox: the only place where a package's code has network access.

What it does: programs run in bubblewrap's namespaces as a user that exists nowhere else, see the system's folders and
one Python read-only, and write only to the folders they are given and to temporary ones in memory. They see no process
and no other file of the host, nothing of its environment except where pip and uv get packages from, and have no
capabilities. A filter refuses the system calls that builds have no use for (`sandboxes/host/seccomp.py`). Each run has
limits on its time, on the address space and the number of its processes, and on what it may write.

What it does not do: keep them off the network. Installing needs it, so code of a package and of all that it depends on
can reach whatever this machine can reach while an environment is built, services on its loopback address included, and
read the credentials in these settings.
Tests, bugs and agents run elsewhere, without any network.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from uv import find_uv_bin

from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.inside import programs as sandbox_programs
from gumshoe.env.sandboxes.host.bwrap import (
    SYSTEM_FOLDERS,
    filtered_calls,
    find_bwrap,
    guest_user,
    namespace_options,
    parents,
    system_mounts,
)
from gumshoe.errors import SandboxError

__all__ = ["UV", "BuildResult", "BuildSandbox", "IndexSettings"]

HOME, PROGRAMS, UV = "/tmp/home", "/gumshoe", "/uv"  # noqa: S108 - inside the sandbox
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf")
OUTPUT_BYTES = 256 << 10
LOOK_EVERY_S = 2.0
PROCESSES = 512
HANDED_ON = re.compile(
    r"(?:https?|no|all)_proxy|ssl_cert_(?:file|dir)|requests_ca_bundle"
    r"|UV_(?:DEFAULT_INDEX|EXTRA_INDEX_URL|INDEX\w*|FIND_LINKS|INSECURE_HOST|HTTP_TIMEOUT)",
    re.IGNORECASE,
)
# Where packages come from, as pip is configured, and what uv calls it; everything else that a person may have set does
# not belong in an environment.
KEYS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
FIXED = {
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    # All indexes count alike, as they do for pip.
    "UV_INDEX_STRATEGY": "unsafe-best-match",
    "UV_LINK_MODE": "copy",
    "UV_NO_CACHE": "1",
    "UV_NO_CONFIG": "1",
    "UV_PYTHON_DOWNLOADS": "never",
}
INDEX_PAGES = "simple"
PRINTED = "[stderr]"
"""The line under which uv shows what a build printed."""
ERROR = re.compile(r"(?:error: |[\w.]*Error(?:: |$))", re.IGNORECASE)
PIP_S = 60


@dataclass(frozen=True)
class BuildResult:
    """What one program did. `problem` says which limit ended it, by its name; None where none did."""

    exit_code: int | None
    output: str
    problem: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end and exited with 0."""
        return self.exit_code == 0 and self.problem is None

    @property
    def why(self) -> str:
        """Why it failed, in one line."""
        if self.problem is not None:
            return self.problem
        stripped = (line.strip() for line in self.output.splitlines())
        lines = [line for line in stripped if line and not line.startswith("hint: ")]
        # uv reports the cause of an error below it, and the cause of that below both. If a build failed, what it
        # printed follows, and says more than that it failed.
        causes = [line for line in lines if line.startswith("cause: ")]
        printed = lines[lines.index(PRINTED) + 1 :] if PRINTED in lines else []
        raised = [line for line in printed if ERROR.match(line)] or printed[-1:]
        useful = raised[-1:] or causes[-1:] or [line for line in lines if ERROR.match(line)] or lines[-1:]
        return useful[0].removeprefix("cause: ")[:200] if useful else f"exit code {self.exit_code}"


class BuildSandbox:
    """Runs programs with network access on a few folders of this machine.

    Args:
        folders: absolute paths inside the sandbox to the folders that are there and may be written.
        python: the interpreter whose home is mounted.

    Raises SandboxError where bubblewrap does not work.
    """

    def __init__(self, folders: Mapping[str, Path], python: Path, config: BuildConfig) -> None:
        try:
            self._program = find_bwrap().path
        except SandboxError as error:
            raise SandboxError(f"environments are built in {error}") from None
        self._folders = dict(folders)
        self._python = python
        self._config = config
        self._settings = IndexSettings.of_this_machine()
        self._as_root = os.geteuid() == 0
        self._user = guest_user()

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        limit: str,
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        sealed: Sequence[str] = (),
    ) -> BuildResult:
        """Runs a program to its end.

        Args:
            limit: what the timeout is called in messages.
            sealed: folders that this program may only read; if there are any, it has no network either.
        """
        with (
            tempfile.TemporaryDirectory(prefix="gumshoe-build-") as name,
            tempfile.TemporaryFile() as output,
            filtered_calls() as (filtering, filters),
        ):
            programs = Path(name)
            programs.chmod(0o755)
            self._prepare(programs)
            if self._as_root:
                self._own(self._user)
            try:
                process = subprocess.Popen(
                    [*self._bwrap(programs, sealed), *filtering, "--chdir", cwd, "--", *self._launch(argv)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._environment(env or {}),
                    pass_fds=filters,
                    start_new_session=True,
                )
                problem = self._wait(process, timeout, limit)
            finally:
                if self._as_root:
                    self._own(0)
            return BuildResult(process.returncode, _tail(output.fileno()), problem)

    def _wait(self, process: subprocess.Popen[bytes], timeout: float, limit: str) -> str | None:
        deadline = time.monotonic() + timeout
        allowed = self._config.disk_mb << 20
        problem = None
        try:
            while problem is None:
                left = deadline - time.monotonic()
                try:
                    process.wait(max(0.0, min(left, LOOK_EVERY_S)))
                    return None
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= deadline:
                        problem = f"it took more than {timeout:g} s ({limit})"
                    elif sum(_size(folder) for folder in self._folders.values()) > allowed:
                        problem = f"it wrote more than {self._config.disk_mb} MiB (build.disk_mb)"
            return problem
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _own(self, user: int) -> None:
        """Gives the folders to a user, without following links."""
        for folder in self._folders.values():
            os.chown(folder, user, user)
            for parent, names, files in os.walk(folder):
                for name in (*names, *files):
                    os.chown(Path(parent, name), user, user, follow_symlinks=False)

    def _prepare(self, folder: Path) -> None:
        for name in ("drop_privileges.py", "fetch_sdist.py"):
            shutil.copy(Path(sandbox_programs.__file__).parent / name, folder / name)
            (folder / name).chmod(0o644)
        user = self._user
        (folder / "passwd").write_text(f"root:x:0:0:root:/:/bin/false\ngumshoe:x:{user}:{user}::{HOME}:/bin/sh\n")

    def _launch(self, argv: Sequence[str]) -> list[str]:
        config = self._config
        wanted = {
            "user": self._user if self._as_root else None,
            "limits": {
                "RLIMIT_CORE": 0,
                "RLIMIT_FSIZE": config.disk_mb << 20,
                "RLIMIT_AS": config.memory_mb << 20,
                "RLIMIT_NPROC": PROCESSES,
            },
        }
        return [str(self._python), "-I", "-S", f"{PROGRAMS}/drop_privileges.py", json.dumps(wanted), *argv]

    def _bwrap(self, programs: Path, sealed: Sequence[str]) -> Iterator[str]:
        yield from (self._program, *namespace_options(self._as_root, network=not sealed), "--die-with-parent")
        for folder in parents([*self._read_only(), *self._folders, "/etc/ssl/certs", f"{PROGRAMS}/x"]):
            yield from ("--perms", "0755", "--dir", folder)
        yield from ("--proc", "/proc", "--dev", "/dev")
        yield from system_mounts(NETWORK_FILES)
        yield from ("--perms", "1777", "--size", str(self._config.disk_mb << 20), "--tmpfs", "/tmp")  # noqa: S108
        yield from ("--perms", "0777", "--dir", HOME)
        for path in self._read_only():
            yield from ("--ro-bind-try", path, path)
        yield from ("--ro-bind", str(programs), PROGRAMS, "--ro-bind", str(programs / "passwd"), "/etc/passwd")
        yield from ("--ro-bind", find_uv_bin(), UV)
        for inside, folder in self._folders.items():
            yield from ("--ro-bind" if inside in sealed else "--bind", str(folder), inside)
        yield from ("--remount-ro", "/dev", "--remount-ro", "/")

    def _read_only(self) -> list[str]:
        """The Python and pip's local indexes, unless they are in the system's folders."""
        home = str(self._python.resolve().parent.parent)
        wanted = [home, *self._settings.paths]
        in_system = tuple(f"{name}/" for name in SYSTEM_FOLDERS)
        return [path for path in dict.fromkeys(wanted) if path != "/" and not f"{path}/".startswith(in_system)]

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {
            "PATH": f"{self._python.resolve().parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": HOME,
            "TMPDIR": "/tmp",  # noqa: S108 - inside the sandbox
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
            "SOURCE_DATE_EPOCH": "315532800",
            **self._settings.environment,
            **({"UV_EXCLUDE_NEWER": self._config.as_of} if self._config.as_of else {}),
            **more,
        }


def _size(folder: Path) -> int:
    """The bytes of the regular files below a folder that others may be changing."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(parent, name).lstat().st_size
            except OSError:
                continue
    return total


def _tail(file: int) -> str:
    """The end of what was printed."""
    size = os.fstat(file).st_size
    return os.pread(file, OUTPUT_BYTES, max(0, size - OUTPUT_BYTES)).decode("utf-8", "replace")


@dataclass(frozen=True)
class IndexSettings:
    """Where pip and uv get packages from on this machine, in a form that can be handed to a sandbox.

    Attributes:
        environment: variables of the environment for both.
        paths: the local files and folders that these name.
    """

    environment: dict[str, str]
    paths: tuple[str, ...]

    @staticmethod
    @functools.cache
    def of_this_machine() -> IndexSettings:
        """The settings in pip's files and variables, as `pip config list` shows them, and in uv's variables."""
        for_pip: dict[str, str] = {}
        for_uv: dict[str, str] = {}
        for line in _pip_config():
            name, _, value = line.partition("=")
            section, _, key = name.partition(".")
            values = shlex.split(value)
            if key in KEYS and values and section in (":env:", "global", "install", "download"):
                words = values[0].split()
                for_pip[f"PIP_{key.upper().replace('-', '_')}"] = " ".join(words)
                for_uv[KEYS[key]] = ("," if key == "find-links" else " ").join(words)
        variables = {name: value for name, value in os.environ.items() if HANDED_ON.fullmatch(name)}
        environment = {**for_uv, **for_pip, **variables, **FIXED}
        words = [word for value in environment.values() for word in re.split(r"[\s,]+", value)]
        return IndexSettings(environment, tuple(dict.fromkeys(path for word in words if (path := _local(word)))))


def _pip_config() -> list[str]:
    argv = [sys.executable, "-m", "pip", "config", "list"]
    try:
        result = subprocess.run(argv, capture_output=True, text=True, timeout=PIP_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return result.stdout.splitlines() if result.returncode == 0 else []


def _local(word: str) -> str | None:
    """The folder or file of this machine that a word names, if it names one."""
    path = url2pathname(urlsplit(word).path) if word.startswith("file:") else word
    if not path.startswith("/") or not Path(path).exists():
        return None
    # The pages of a local index lead to files beside it.
    return str(Path(path).parent) if Path(path).name == INDEX_PAGES else path
