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

A `NewEnvironment` is a virtual environment that is made in such a sandbox.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from uv import find_uv_bin

from gumshoe.env.bugs.config import BuildConfig
from gumshoe.env.bugs.packages.machine import IndexSettings, Interpreter
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
from gumshoe.env.virtualenvs import INSIDE, RECORD, Lock, environment_folder, is_installed
from gumshoe.errors import SandboxError, TaskError
from gumshoe.storage import cache_folder, write_atomic

HOME, PROGRAMS, UV, WORKSPACE = "/tmp/home", "/gumshoe", "/uv", "/workspace"  # noqa: S108 - inside the sandbox
NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf")
OUTPUT_BYTES = 256 << 10
LOOK_EVERY_S = 2.0
PROCESSES = 512
PRINTED = "[stderr]"
"""The line under which uv shows what a build printed."""
ERROR = re.compile(r"(?:error: |[\w.]*Error(?:: |$))", re.IGNORECASE)
TimeLimit = Literal["install_timeout_s", "collect_timeout_s"]
"""The keys of the config that limit the time of a program."""


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
        limit: TimeLimit = "install_timeout_s",
        cwd: str = "/",
        env: Mapping[str, str] | None = None,
        sealed: Sequence[str] = (),
    ) -> BuildResult:
        """Runs a program to its end.

        Args:
            limit: the key of the config that says how long it may take.
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
                problem = self._wait(process, limit)
            finally:
                if self._as_root:
                    self._own(0)
            return BuildResult(process.returncode, _tail(output.fileno()), problem)

    def _wait(self, process: subprocess.Popen[bytes], limit: TimeLimit) -> str | None:
        timeout: float = getattr(self._config, limit)
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
                        problem = f"it took more than {timeout:g} s (build.{limit})"
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


PYTHON = f"{INSIDE}/bin/python"
# Sandboxes mount the environment read-only, so Python could not keep any byte code in it: each run of the tests would
# compile pytest and every dependency anew. Hashes instead of times, which an image layer may change.
COMPILE = (PYTHON, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", f"{INSIDE}/lib")
# pytest rewrites the assertions of its plugins, including all of hypothesis, and keeps byte code of its own for that.
# A session without tests loads them.
REWRITE = (PYTHON, "-m", "pytest", "--collect-only", "-c", os.devnull, "-p", "no:cacheprovider")


class NewEnvironment:
    """A virtual environment that is being made, at `/environment` in a build sandbox.

    Attributes:
        workspace: a folder for sources that are to be installed in place, at first empty. Programs run in it, where it
            is called `/workspace`.
        variables: set for every program.
    """

    def __init__(self, folder: Path, python: Interpreter, config: BuildConfig) -> None:
        self.workspace = folder / "workspace"
        self.variables: dict[str, str] = {}
        self._root = folder / "root"
        self._python = python
        self._sandbox = BuildSandbox({INSIDE: self._root, WORKSPACE: self.workspace}, python.path, config)
        for path in (self.workspace, self._root):
            path.mkdir()

    @property
    def site(self) -> Path:
        """The folder of installed packages."""
        return self._root / "lib" / f"python3.{self._python.version[1]}" / "site-packages"

    def create(self) -> BuildResult:
        """Makes the environment, without any package."""
        return self.run((UV, "venv", "--quiet", "--allow-existing", "--python", str(self._python.path), INSIDE))

    def install(self, words: Sequence[str], env: Mapping[str, str] | None = None) -> BuildResult:
        """Installs requirements, which may be options of `uv pip install`, too."""
        return self.run((UV, "pip", "install", "--quiet", "--python", PYTHON, *words), env=env)

    def freeze(self) -> tuple[str, ...]:
        """The pinned requirements, without a package that is installed in place. Raises TaskError."""
        result = self.run((UV, "pip", "list", "--quiet", "--python", PYTHON, "--format=json", "--exclude-editable"))
        try:
            found = json.loads(result.output)
        except ValueError:
            raise TaskError(f"the installed packages cannot be listed: {result.why}") from None
        return tuple(sorted(f"{item['name']}=={item['version']}" for item in found))

    def run(
        self,
        argv: Sequence[str],
        *,
        limit: TimeLimit = "install_timeout_s",
        env: Mapping[str, str] | None = None,
        sealed: Sequence[str] = (),
    ) -> BuildResult:
        """Runs a program, as `BuildSandbox.run` does."""
        variables = {"PATH": f"{INSIDE}/bin:/usr/bin:/bin", **self.variables, **(env or {})}
        return self._sandbox.run(argv, limit=limit, cwd=WORKSPACE, env=variables, sealed=sealed)

    def keep(self, lock: Lock) -> None:
        """Compiles what is installed and moves it all to where sandboxes find the environment of this lock, if none is
        there.

        The record beside it can be written by no package.
        """
        if is_installed(lock.name):
            return
        # Neither exit code says anything: some templates are not valid Python, and there are no tests.
        self._sandbox.run(COMPILE)
        self._sandbox.run(REWRITE, limit="collect_timeout_s", cwd="/tmp", env={"PYTHONDONTWRITEBYTECODE": ""})  # noqa: S108
        if is_installed(lock.name):  # Another process has made it meanwhile.
            return
        folder = environment_folder(lock.name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._root.replace(folder / "root")
        (folder / "root").chmod(0o755)
        record = {"python": str(self._python.path), "version": list(self._python.version[:2]), "lock": asdict(lock)}
        write_atomic(folder / RECORD, json.dumps(record, indent=1))


@contextmanager
def new_environment(python: Interpreter, config: BuildConfig) -> Generator[NewEnvironment]:
    """An environment to be made on the file system where finished ones are kept; what is not kept is removed."""
    environments = cache_folder() / "environments"
    environments.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=environments, ignore_cleanup_errors=True) as folder:
        yield NewEnvironment(Path(folder), python, config)


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
