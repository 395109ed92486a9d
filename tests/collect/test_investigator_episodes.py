"""The investigator in whole episodes: it finds a bug that the first suspect misses."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from gumshoe.collect.config import InvestigatorConfig
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.collect.policies.investigator.belief import form_belief
from gumshoe.collect.policies.investigator.latest import in_words, line_and_change
from gumshoe.collect.policies.investigator.policy import Investigator, pack_of
from gumshoe.collect.policies.investigator.words import Words
from gumshoe.collect.policies.strategy import StrategyPolicy
from gumshoe.eval.score.metrics import conduct_of
from gumshoe.records import (
    DebugFrame,
    ExecResult,
    Observation,
    StopReason,
    Task,
    TestOutcome,
    TestRun,
    Trajectory,
    WorkspaceSpec,
)
from gumshoe.tools.eval import as_data, describe
from support.collect.seeker_episodes import play_seeker, shop_task

SHOP = """\
def parse(text):
    name, _, count = text.partition(":")
    return name, int(count)


def is_large(count):
    return count >= 10


def price(text):
    name, count = parse(text)
    cost = count * 3
    if is_large(count):
        cost = cost - 5
    return f"{name} {cost}"
"""
TESTS = """\
import pytest
from shop import price

def test_small():
    assert price("tea:2") == "tea 6"

def test_nearly_large():
    assert price("tea:9") == "tea 27"

def test_ten_is_small():
    assert price("tea:10") == "tea 30"

def test_large():
    assert price("tea:11") == "tea 28"
"""


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """Ten counts as large: `price`, which does what is seen to be wrong, is not where it comes from."""
    folder = tmp_path_factory.mktemp("shop")
    return shop_task(folder, SHOP, TESTS, "test_shop.py::test_ten_is_small fails")


def investigate(task: Task, seed: int) -> Trajectory:
    return play_seeker(task, InvestigatorConfig(), seed=seed)


def test_it_finds_by_experiment_what_the_spectrum_cannot_tell(task: Task) -> None:
    found = investigate(task, 1)
    assert found.stop is StopReason.REPORTED
    pack = found.context_pack
    assert pack is not None
    first = pack.locations[0]
    assert (first.symbol, first.start, first.end) == ("is_large", 7, 7)
    assert "count > 10" in pack.hypothesis
    assert [finding.quote for finding in pack.findings if "count > 10" in finding.quote]
    last = found.steps[-1]
    assert last.confidence is not None
    assert last.confidence >= 0.7
    assert unseen(found) == []
    assert conduct_of(found)["grounding"] == 1.0
    assert all(step.rationale and step.confidence is not None for step in found.steps)
    calls = [call for step in found.steps for call in step.tool_calls]
    assert all(not observation.failure for step in found.steps for observation in step.observations)
    assert "whatif" in {call.name for call in calls}
    assert json.loads(pack.model_dump_json())["ruled_out"] or len(pack.locations) > 1
    replay = StrategyPolicy(Investigator(), seed=1)
    # The belief comes from what was observed alone: a fresh policy says the same at the same point.
    assert replay.complete(found.messages[:2], found.tools).text == found.steps[0].completion.text


def test_a_project_whose_tests_pass_gives_no_report(task: Task, tmp_path: Path) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    (folder / "shop.py").write_text(SHOP.replace(">= 10", "> 10"))
    (folder / "test_shop.py").write_text(TESTS)
    found = investigate(task.model_copy(update={"workspace": WorkspaceSpec(path=str(folder))}), 2)
    assert found.context_pack is None
    assert found.stop is StopReason.NO_TOOL_CALL


def test_the_report_names_only_a_frame_that_the_tests_have_shown() -> None:
    frames = [DebugFrame(path=f"shop{number}.py", line=7, function="total", code="x") for number in range(9)]
    outcomes = tuple(
        TestOutcome(id=f"test_shop.py::test_{number}", outcome="failed", message="ValueError", frames=(frame,))
        for number, frame in enumerate(frames)
    )
    run = TestRun(result=ExecResult(exit_code=1, output="", duration_s=1), outcomes=outcomes)
    shown = describe(run)
    output = ToolOutput(0, Observation(tool="eval", text=shown, data=as_data(run)))
    belief = form_belief([output])
    pack = pack_of(belief, [output], Words(random.Random(0), belief, [output]))
    assert pack is not None
    assert pack.failing_frame is not None
    assert f"{pack.failing_frame.path}:7" in shown
    assert "shop8.py" not in shown


def test_long_code_in_a_sentence_ends_with_a_whole_word() -> None:
    code = f"text = {'a' * 50} + SEPARATOR_OF_WORDS.join(words)"
    assert in_words(code) == f"`text = {'a' * 50} +` (and so on)"
    assert in_words("x" * 100) == f"`{'x' * 70}` (and so on)"
    assert in_words("x = 1") == "`x = 1`"


@pytest.mark.parametrize(
    ("line", "do", "shown"),
    [
        (
            f"value = first(alpha, {'b' * 50}, gamma) + rest",
            f"replace value = first(alpha, {'b' * 50}, delta) + rest",
            (f"... `{'b' * 50}, gamma) + rest`", f"... `{'b' * 50}, delta) + rest`"),
        ),
        (
            f"elif is_known(name) and {'x' * 9}.holds(one, other) and count > LIMIT_OF_ALL_NAMES:",
            f"condition is_known(name) and {'x' * 9}.holds(one, other) and count >= LIMIT_OF_ALL_NAMES",
            (
                "... `one, other) and count > LIMIT_OF_ALL_NAMES:`",
                "... `one, other) and count >= LIMIT_OF_ALL_NAMES`",
            ),
        ),
        (f"x = {'a + ' * 30}b", "replace y = 1", (f"`x = {'a + ' * 16}a` (and so on)", "`y = 1`")),
        ("if a:", "true", ("`if a:`", "`true`")),
    ],
)
def test_long_code_and_its_change_are_cut_around_what_differs(line: str, do: str, shown: tuple[str, str]) -> None:
    assert line_and_change(line, do) == shown
