"""What all tests share: which sandboxes work on this machine, and what happens where one does not.

`@pytest.mark.needs("docker")` (or "podman", "bubblewrap", "registry") skips a test, with the reason, where that backend
does not work, or the program of an image registry is not installed. With GUMSHOE_REQUIRE_DOCKER=1 it fails instead for
want of Docker, bubblewrap or a registry, with GUMSHOE_REQUIRE_PODMAN=1 for want of Podman.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parent.parent
REQUIRED_BY = {
    "docker": "GUMSHOE_REQUIRE_DOCKER",
    "bubblewrap": "GUMSHOE_REQUIRE_DOCKER",
    "registry": "GUMSHOE_REQUIRE_DOCKER",
    "podman": "GUMSHOE_REQUIRE_PODMAN",
}
"""The variable that, where it is 1, lets no test be skipped for want of a backend."""

os.environ["GUMSHOE_LLM_CONFIG"] = str(ROOT / "tests" / "llm.yaml")

# Examples take as long as the machine is busy: no deadline, and the same examples in every run.
settings.register_profile("gumshoe", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gumshoe")

# Started in the background of a script, this process and all it starts would be deaf to Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@functools.cache
def reason_to_skip(backend: str) -> str | None:
    """Why `backend` does not work on this machine; None where it does."""
    if backend == "registry":
        found = shutil.which("docker-registry")
        return None if found else "docker-registry is not installed (apt-get install docker-registry)"
    from gumshoe.env.config import SandboxConfig
    from gumshoe.env.sandboxes.open import unavailable_reason

    reason = unavailable_reason(backend, None, SandboxConfig())
    return None if reason is None else f"{backend}: {reason}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Workers for `-n auto`: one per core, at least 2, and at most 8, as each may load torch."""
    return min(max(2, len(os.sched_getaffinity(0))), 8)


def pytest_collection_finish() -> None:
    """What the test files import stays until the end: the garbage collector does not have to look at it each time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    for mark in item.iter_markers("needs"):
        for backend in mark.args:
            reason = reason_to_skip(backend)
            if reason is not None and os.environ.get(REQUIRED_BY[backend]) == "1":
                pytest.fail(f"{REQUIRED_BY[backend]}=1, but {reason}", pytrace=False)
            if reason is not None:
                pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keeps what the tests cache away from the user's cache and from that of other test processes."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("gumshoe-cache")
        patch.setenv("GUMSHOE_CACHE", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def forgotten_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forgets a test's modules and search path, so that the modules of two tests may have one name."""
    before = sys.path.copy()
    yield
    if sys.path == before:
        return
    sys.path[:] = before
    temporary = tmp_path_factory.getbasetemp()
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "").is_relative_to(temporary):
            del sys.modules[name]


@pytest.fixture
def not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps coverage out of programs that a test starts and the floor leaves out: Python runs slower with it."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps installed plugins out of every pytest that a test starts with this process's environment."""
    from support.sandboxes.sandbox_backends import NO_PLUGINS

    for name, value in NO_PLUGINS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `gumshoe` with some arguments in this process, which spares its start; in the test's own folder."""
    from gumshoe.cli import main

    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = leaving.code
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, int(code or 0), printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def closed_port() -> Iterator[Callable[[], int]]:
    """Makes ports on loopback that refuse connections and that no other process is given meanwhile."""
    with contextlib.ExitStack() as stack:

        def reserve() -> int:
            reserved = stack.enter_context(socket.socket())
            reserved.bind(("127.0.0.1", 0))
            return int(reserved.getsockname()[1])

        yield reserve
