"""Programs that look for bugs, in whole episodes: the investigator, the heuristic `vary`, one that only reads."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from gumshoe.collect.config import AgentConfig, CustomConfig, InvestigatorConfig, PolicyConfig, VaryConfig
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.collect.packs import pack_text
from gumshoe.collect.policies import make_policy
from gumshoe.collect.policies.investigator.belief import form_belief
from gumshoe.collect.policies.investigator.policy import Investigator, pack_of
from gumshoe.collect.policies.investigator.words import Words, in_words, line_and_change
from gumshoe.collect.policies.strategy import StrategyPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.env.config import SandboxConfig
from gumshoe.eval.score.metrics import conduct_of
from gumshoe.records import (
    ContextPack,
    DebugFrame,
    ExecResult,
    Finding,
    Limits,
    Observation,
    StopReason,
    TestOutcome,
    TestRun,
    Trajectory,
    WhatIfProbe,
)
from gumshoe.tools.eval import as_data, describe
from support.folder_tasks import folder_task
from support.small_projects import BULK_PRICES

BULK = BULK_PRICES["shop.py"]
VARY = ("eval", "suspects", "vary", "report")


def play(
    folder: Path,
    policy: PolicyConfig,
    shop: str = BULK,
    tests: str = BULK_PRICES["test_shop.py"],
    *,
    problem: str = "test_shop.py::test_ten_is_small fails",
    tools: tuple[str, ...] | None = None,
    seed: int = 0,
) -> Trajectory:
    """One episode of a seeker, which has its usual tools unless told otherwise."""
    files = {"shop.py": shop, "test_shop.py": tests}
    task = folder_task(folder, files, problem_statement=problem, limits=Limits(command_timeout_s=300))
    agent = make_agent(AgentConfig(kind="seeker", tools=tools))
    sandbox = SandboxConfig(kind="bubblewrap")
    return play_one(EpisodeSpec(task), agent, make_policy(policy, task, None, seed), sandbox=sandbox)


def tools_called(found: Trajectory) -> list[str]:
    return [call.name for step in found.steps for call in step.tool_calls]


def pack_in(found: Trajectory) -> ContextPack:
    """The report, of which every word was shown before and every finding holds."""
    assert found.stop is StopReason.REPORTED
    assert found.context_pack is not None
    assert unseen(found) == []
    assert {finding.check and finding.check.status for finding in found.context_pack.findings} <= {"confirmed"}
    return found.context_pack


def test_the_investigator_finds_by_experiment_what_the_spectrum_cannot_tell(tmp_path: Path) -> None:
    """Ten counts as large: `price`, which does what is seen to be wrong, is not where it comes from."""
    found = play(tmp_path, InvestigatorConfig(), seed=1)
    pack = pack_in(found)
    assert (pack.locations[0].symbol, pack.locations[0].start, pack.locations[0].end) == ("is_large", 2, 2)
    assert "count > 10" in pack.hypothesis
    assert [finding.quote for finding in pack.findings if "count > 10" in finding.quote]
    assert (found.steps[-1].confidence or 0) >= 0.7
    assert conduct_of(found)["grounding"] == 1.0
    assert all(step.rationale and step.confidence is not None for step in found.steps)
    assert all(not observation.failure for step in found.steps for observation in step.observations)
    assert "whatif" in tools_called(found)
    assert pack.ruled_out or len(pack.locations) > 1
    replay = StrategyPolicy(Investigator(), seed=1)
    # The belief comes from what was observed alone: a fresh policy says the same at the same point.
    assert replay.complete(found.messages[:2], found.tools).text == found.steps[0].completion.text


def test_a_project_whose_tests_pass_gives_no_report(tmp_path: Path) -> None:
    found = play(tmp_path, InvestigatorConfig(), BULK.replace(">= 10", "> 10"), seed=2)
    assert (found.stop, found.context_pack) == (StopReason.NO_TOOL_CALL, None)


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


def test_a_change_of_a_long_statement_is_shown_whole_where_a_person_reads() -> None:
    do = f"replace return join({', '.join(f'value_{number}' for number in range(20))})"
    probe = WhatIfProbe(path="shop.py", line=3, do=do, effect="passes")
    finding = Finding(step=1, quote=f"{probe.describe()}: passes", claim="it passes", probe=probe)
    pack = ContextPack(findings=(finding,))
    assert do not in finding.quote
    assert do in pack_text(pack, handed_over=False)


def test_vary_reports_the_line_where_a_change_repairs_everything(tmp_path: Path) -> None:
    found = play(tmp_path, VaryConfig(), tools=VARY)
    pack = pack_in(found)
    (place,) = pack.locations
    assert (place.path, place.start, place.end, place.symbol) == ("shop.py", 2, 2, "is_large")
    assert "count > 10" in pack.findings[-1].quote
    assert (len(pack.findings), found.steps[-1].confidence) == (2, 0.8)
    assert tools_called(found) == list(VARY)


def test_vary_with_the_debugger_stops_there_and_cites_a_value(tmp_path: Path) -> None:
    found = play(tmp_path, VaryConfig(), tools=(*VARY[:3], "pdb", "report"))
    assert tools_called(found) == ["eval", "suspects", "vary", "pdb", "report"]
    pack = pack_in(found)
    assert (pack.locations[0].start, pack.locations[0].symbol) == (2, "is_large")
    (finding,) = pack.findings
    assert (finding.step, finding.quote) == (3, "count = 2")


@pytest.mark.parametrize(
    ("cost", "confidence", "words"),
    [
        ("cost = sorted([count * 3, 30])[-1]", 0.6, "help some of the failing tests"),
        ("cost = int(str(count) * 3)", 0.4, "still the first suspect"),
    ],
    ids=["some-help", "nothing-helps"],
)
def test_vary_reports_the_whole_function_where_no_change_repairs(
    tmp_path: Path, cost: str, confidence: float, words: str
) -> None:
    shop = BULK.replace(">= 10", "> 10").replace("cost = count * 3", cost)
    found = play(tmp_path, VaryConfig(), shop, tools=VARY)
    pack = pack_in(found)
    (place,) = pack.locations
    assert (place.symbol, place.end - place.start) == ("price", 4)
    assert words in pack.hypothesis
    assert found.steps[-1].confidence == confidence


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


def test_one_that_reads_reports_the_function_that_the_test_is_named_after(tmp_path: Path) -> None:
    """The baseline in benchmarks/results."""
    reader = CustomConfig(path="benchmarks.results.reading_policy:make")
    problem = "test_shop.py::test_price fails:\n\n    NameError: name 'total' is not defined"
    found = play(tmp_path, reader, SHOP, TESTS, problem=problem, tools=("grep", "view", "report"))
    assert found.stop is StopReason.REPORTED
    assert tools_called(found) == ["grep", "view", "grep", "view", "report"]
    assert found.context_pack is not None
    (place,) = found.context_pack.locations
    assert (place.path, place.start, place.end, place.symbol) == ("shop.py", 5, 10, "price")
