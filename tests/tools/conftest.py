"""What the tests of the tools share: the interpreters that the injected modules are tried on, and small projects."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.sandboxes.host.bwrap import bubblewrap_unavailable_reason
from gumshoe.records import Limits
from support.folder_tasks import folder_task, write_files
from support.pythons import find_pythons
from support.sandboxes.sandbox_backends import NO_PLUGINS
from support.tools.shop_program import SHOP
from support.tools.shop_program import TESTS as SHOP_TESTS
from support.tools.tool_bench import Bench, Open

CART = '''\
"""A cart."""


class Cart:
    def __init__(self):
        self.items = []

    @staticmethod
    def price(item):
        """What one item costs."""
        value = item * 2
        return value

    def total(self):
        total = 0
        for item in self.items:
            total += self.price(item)
        return total


def numbers(count):
    for number in range(count):
        yield number


def collect():
    found = []
    for number in numbers(2):
        found.append(number)
    return found
'''

TESTS = """\
from cart import Cart, collect


def test_total():
    cart = Cart()
    cart.items.append(3)
    cart.items.append(None)
    assert cart.total() == 6


def test_collect():
    assert collect() == [0, 1]
"""


@pytest.fixture(autouse=True)
def started_quickly(not_measured: None, no_plugins: None) -> None:
    """These tests start programs under test and what is injected into them, which the floor of coverage leaves out."""


@pytest.fixture(params=find_pythons(with_pytest=True), ids=lambda path: "python")
def python(request: pytest.FixtureRequest) -> str:
    """An interpreter that has pytest."""
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one failing and one passing test."""
    return write_files(tmp_path / "project", {"cart.py": CART, "test_cart.py": TESTS})


BACKENDS = [
    "local",
    pytest.param("bubblewrap", marks=pytest.mark.needs("bubblewrap")),
    pytest.param("docker", marks=pytest.mark.needs("docker")),
]
ALL_TOOLS = ("listdir", "view", "grep", "eval", "suspects", "pdb", "rewrite", "bash", "report", "submit")
ENTRYPOINT = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """The kind of sandbox; a test that asks for it runs on every one that works here."""
    return str(request.param)


@pytest.fixture
def open_bench(project: Path) -> Generator[Open]:
    """Opens sandboxes on the project, of the usual kind unless a test names one; all are closed at the end."""
    envs: list[DebugEnv] = []

    def begin(
        kind: str | None = None,
        *,
        tools: Sequence[str] = ALL_TOOLS,
        timeout: float = 60.0,
        sandbox: Mapping[str, Any] | None = None,
        **task: Any,
    ) -> Bench:
        facts: dict[str, Any] = {"entrypoint": ENTRYPOINT, "limits": Limits(command_timeout_s=timeout), **task}
        kind = kind or ("bubblewrap" if bubblewrap_unavailable_reason() is None else "local")
        config = SandboxConfig.model_validate({"kind": kind, "unsafe": True, "env": NO_PLUGINS, **(sandbox or {})})
        envs.append(DebugEnv(folder_task(project, **facts), tools=tools, sandbox=config, trusted=True))
        envs[-1].reset(seed=0)
        return Bench(envs[-1])

    yield begin
    for each in envs:
        each.close()


@pytest.fixture
def bench(open_bench: Open) -> Bench:
    """All tools on the project."""
    return open_bench()


@pytest.fixture
def shop(project: Path) -> Path:
    """A project with the program of `shop_program`."""
    (project / "test_cart.py").unlink()
    return write_files(project, {"shop.py": SHOP, "test_shop.py": SHOP_TESTS})
