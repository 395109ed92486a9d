"""The policy that only reads, from benchmarks: whole episodes in a sandbox."""

from __future__ import annotations

from pathlib import Path

from gumshoe.collect.agent import make_agent
from gumshoe.collect.config import AgentConfig
from gumshoe.collect.policies import make_policy
from gumshoe.collect.policy_config import CustomConfig
from gumshoe.collect.rollout import Rollout
from gumshoe.collect.spec import EpisodeSpec
from gumshoe.env.config import SandboxConfig
from gumshoe.records import StopReason, Task, Trajectory, WorkspaceSpec

SHOP = """\
class Large:
    pass


def price(
    count,
):
    return count * 3 if count < 10 else count * 3 - 5


def total(counts):
    return sum(map(price, counts))
"""
TESTS = """\
from shop import Large, price, total

def test_price():
    assert isinstance(Large(), Large)
    assert price(10) == 25
    assert total([1, 2]) == 9
"""


def play(folder: Path, tests: str, error: str) -> Trajectory:
    (folder / "shop.py").write_text(SHOP)
    (folder / "test_shop.py").write_text(tests)
    task = Task(
        id="shop/price",
        source="synth",
        problem_statement=f"test_shop.py::test_price fails:\n\n    {error}",
        workspace=WorkspaceSpec(path=str(folder)),
        entrypoint=("python", "-m", "pytest", "-q"),
    )
    policy = make_policy(CustomConfig(path="benchmarks.reading_policy:make"), task, None, 0)
    agent = make_agent(AgentConfig(kind="seeker", tools=("grep", "view", "report")))
    return Rollout(EpisodeSpec(task), agent, policy, sandbox=SandboxConfig(kind="bubblewrap")).run()


def test_it_reports_the_function_that_the_test_is_named_after(tmp_path: Path) -> None:
    found = play(tmp_path, TESTS, "NameError: name 'total' is not defined")
    assert found.stop is StopReason.REPORTED
    assert [call.name for step in found.steps for call in step.tool_calls] == ["grep", "view", "grep", "view", "report"]
    assert found.context_pack is not None
    (place,) = found.context_pack.locations
    assert (place.path, place.start, place.end, place.symbol) == ("shop.py", 5, 10, "price")
    assert found.errors == ()


def test_it_gives_up_where_the_test_calls_nothing_of_the_project(tmp_path: Path) -> None:
    found = play(tmp_path, "def test_price():\n    assert len([1]) == 2\n", "AssertionError")
    assert found.stop is StopReason.NO_TOOL_CALL
    assert found.context_pack is None
