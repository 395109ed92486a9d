"""What the tests of the tools share: the interpreters that the injected modules are tried on, and small projects."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.sandboxes.host.bwrap import bubblewrap_unavailable_reason
from gumshoe.records import Limits, Task, WorkspaceSpec
from support.pythons import find_pythons
from support.sandboxes.sandbox_backends import CHEAPEST, LOCAL, NO_PLUGINS
from support.tools.shop_program import SHOP
from support.tools.shop_program import TESTS as SHOP_TESTS
from support.tools.tool_bench import Bench

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
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "cart.py").write_text(CART)
    (folder / "test_cart.py").write_text(TESTS)
    return folder


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


def usual_sandbox() -> SandboxConfig:
    """The cheapest kind that works here."""
    return CHEAPEST if bubblewrap_unavailable_reason() is None else LOCAL


@pytest.fixture
def open_bench(project: Path) -> Generator[Callable[..., Bench]]:
    """Opens sandboxes on the project, of the usual kind unless a test names one; all are closed at the end."""
    envs: list[DebugEnv] = []

    def begin(
        kind: str | None = None,
        *,
        tools: Sequence[str] = ALL_TOOLS,
        timeout: float = 60.0,
        env: Mapping[str, str] | None = None,
        **task: Any,
    ) -> Bench:
        fields: dict[str, Any] = {
            "id": "cart",
            "source": "test",
            "problem_statement": "fix the cart",
            "workspace": WorkspaceSpec(path=str(project)),
            "entrypoint": ENTRYPOINT,
            "limits": Limits(command_timeout_s=timeout),
            **task,
        }
        config = usual_sandbox() if kind is None else SandboxConfig(kind=kind, unsafe=True)  # type: ignore[arg-type]
        config = config.model_copy(update={"env": {**NO_PLUGINS, **(env or {})}})
        envs.append(DebugEnv(Task(**fields), tools=tools, sandbox=config, trusted=True))
        envs[-1].reset(seed=0)
        return Bench(envs[-1])

    yield begin
    for each in envs:
        each.close()


@pytest.fixture
def bench(open_bench: Callable[..., Bench]) -> Bench:
    """All tools on the project."""
    return open_bench()


@pytest.fixture
def shop(project: Path) -> Path:
    """A project with the program of `shop_program`."""
    (project / "test_cart.py").unlink()
    (project / "shop.py").write_text(SHOP)
    (project / "test_shop.py").write_text(SHOP_TESTS)
    return project
