"""The policies that are programs: teacher, heuristics, scripts and replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.config import (
    CollectConfig,
    ReplayConfig,
)
from gumshoe.collect.data.store import RunFolder
from gumshoe.collect.episode.conversation import parse_decision
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.collect.policies import make_policy
from gumshoe.collect.policies.heuristics import SUSPECT, TRACEBACK, OneLook
from gumshoe.collect.policies.investigator.policy import Investigator
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.policies.strategy import Strategy, StrategyPolicy
from gumshoe.collect.policies.teacher import Teacher
from gumshoe.errors import PolicyError, ScriptExhausted
from gumshoe.records import Completion, Observation, ToolCall
from support.collect.conversations import OPENING, answer, converse, schemas
from support.shop_tasks import CLEAN, make_task

DEBUG = ("listdir", "view", "grep", "eval", "pdb", "rewrite", "submit")
SEEKER = ("listdir", "view", "grep", "eval", "pdb", "report")
LISTING = ("eval", "suspects", "report")


BUGGY = CLEAN.replace("- 10", "- 14").splitlines()
FAILING = answer(
    "exit code 1\nAssertionError: members pay 36",
    passed=False,
    outcomes=[],
    output="AssertionError: members pay 36",
    frames=[{"path": "shop.py", "line": 14, "function": "<module>"}],
)
OUTLINE = answer(
    "shop.py:4: def discount(total, members):\nshop.py:11: def price(items, members):",
    matches=[
        {"path": "shop.py", "line": 4, "text": "def discount(total, members):"},
        {"path": "shop.py", "line": 11, "text": "def price(items, members):"},
    ],
)
STOP = answer(
    "> shop.py:7 in discount (breakpoint 1)\ntotal = 50\nmembers = True",
    results=[
        {
            "command": "c",
            "output": "",
            "stop": {"reason": "breakpoint", "path": "shop.py", "line": 7, "function": "discount"},
        },
        {"command": "locals", "output": "", "values": [["total", "50"], ["members", "True"]]},
    ],
)
FULL_VIEW = answer("shop.py 4-11 of 14 lines", path="shop.py", start=4, lines=BUGGY[3:11])
FAILING_TEST: dict[str, Any] = {
    "id": "tests/test_a.py::test_b",
    "outcome": "failed",
    "message": "ZeroDivisionError: division by zero",
    "frames": [
        {"path": "tests/test_a.py", "line": 9, "function": "test_b", "code": "f()"},
        {"path": "pkg/a.py", "line": 5, "function": "f", "code": "g()"},
        {"path": "pkg/b.py", "line": 7, "function": "g", "code": "1/0"},
    ],
}


def teacher(folder: Path, explore: float = 0.0, seed: int = 0) -> StrategyPolicy:
    return StrategyPolicy(Teacher(*make_task(folder, 3), explore=explore), seed=seed)


def test_the_teacher_debugs_as_one_would(tmp_path: Path) -> None:
    answers = (FAILING, OUTLINE, FULL_VIEW, STOP, "rewrote shop.py", "exit code 0")
    turns = converse(teacher(tmp_path), DEBUG, *answers)
    assert [turn.tool_calls[0].name for turn in turns] == ["eval", "grep", "view", "pdb", "rewrite", "eval", "submit"]
    assert turns[2].tool_calls[0].arguments == {"path": "shop.py", "start": 4, "end": 11}
    assert turns[3].tool_calls[0].arguments == {"command": "b shop.py:4\nc\nlocals\nw"}
    assert turns[4].tool_calls[0].arguments == {
        "path": "shop.py",
        "code": "        total = total - 10\n",
        "start": 7,
        "end": 7,
    }
    assert "total is 50" in turns[4].text or "total = 50" in turns[4].text or "members" in turns[4].text
    stated = [parse_decision(turn.text) for turn in turns]
    assert [found.decision for found in stated] == ["seek"] * 4 + ["edit", "verify", "submit"]
    assert all(found.rationale for found in stated)
    assert (stated[0].confidence, stated[-1].confidence) == (None, 1.0)
    with pytest.raises(ScriptExhausted):
        converse(teacher(tmp_path), DEBUG, *answers, "submitted")


def test_the_teacher_reports_where_it_may_only_look(tmp_path: Path) -> None:
    turns = converse(teacher(tmp_path), SEEKER, FAILING, OUTLINE, FULL_VIEW, STOP)
    (call,) = turns[-1].tool_calls
    assert call.name == "report"
    assert call.arguments["locations"] == [{"path": "shop.py", "start": 5, "end": 8}]
    assert call.arguments["findings"] == [
        {"fact": 1, "claim": "the program fails"},
        {"fact": 3, "claim": "value of total there"},
    ]


def test_the_same_seed_gives_the_same_episode_and_others_vary(tmp_path: Path) -> None:
    answers = (FAILING, OUTLINE, FULL_VIEW, STOP)

    def episode(seed: int) -> list[str]:
        policy = teacher(tmp_path, 0.5, seed)
        return [f"{turn.text} {turn.tool_calls}" for turn in converse(policy, SEEKER, *answers)]

    assert episode(4) == episode(4)
    assert len({tuple(episode(seed)) for seed in range(8)}) > 3


def answered(call: ToolCall) -> Observation:
    """What a project with two suspects answers, of which the first is not to blame."""
    if call.name == "eval":
        return answer("1 failed\n  ZeroDivisionError: division by zero", passed=False, outcomes=[FAILING_TEST])
    if call.name == "suspects":
        found = [
            {
                "path": "shop.py",
                "function": name,
                "start": start,
                "end": end,
                "score": score,
                "lines": [],
                "distance": 1,
            }
            for name, start, end, score in (("price", 11, 14, 0.9), ("discount", 4, 8, 0.8))
        ]
        return answer("11-14 shop.py price 0.90\n4-8 shop.py discount 0.80", suspects=found, shown=2, failed=1)
    if call.name == "view":
        start, end = int(str(call.arguments["start"])), int(str(call.arguments["end"]))
        return answer("shop.py", path="shop.py", start=start, lines=BUGGY[start - 1 : end])
    if call.name == "pdb":
        line = int(str(call.arguments["command"]).splitlines()[0].rpartition(":")[2])
        stop = {"path": "shop.py", "line": line, "function": "f"}
        return answer("stopped", results=[{"command": "c", "output": "", "stop": stop}])
    return answer("nothing", variants=[])


def test_no_sequence_of_calls_is_more_than_a_fifth_of_the_teachers_episodes(tmp_path: Path) -> None:
    tools = schemas("listdir", "eval", "suspects", "view", "pdb", "whatif", "report")
    routes: Counter[tuple[str, ...]] = Counter()
    wrong = 0
    for seed in range(100):
        policy, messages, called = teacher(tmp_path, 0.25, seed), list(OPENING), list[ToolCall]()
        while not called or called[-1].name != "report":
            turn = policy.complete(messages, tools)
            (call,) = turn.tool_calls
            observation = answered(call).model_copy(update={"tool": call.name})
            messages += [turn.as_message(), tool_message(len(called), observation, call)]
            called.append(call)
        routes[tuple(call.name for call in called)] += 1
        wrong += any(call.arguments.get("start") == 11 for call in called)
        locations: Any = called[-1].arguments["locations"]
        assert locations[0]["path"] == "shop.py"
        assert locations[0]["start"] <= 7 <= locations[0]["end"]
    assert routes.most_common(1)[0][1] <= 20
    assert 10 <= wrong <= 90


def test_a_teacher_goes_nowhere_that_nothing_has_named(tmp_path: Path) -> None:
    turns = converse(teacher(tmp_path), ("eval", "view", "report"), FAILING)
    assert turns[-1].tool_calls == ()
    turns = converse(teacher(tmp_path), ("eval", "view", "rewrite", "submit"), FAILING)
    assert [turn.tool_calls[0].name for turn in turns] == ["eval", "submit"]
    named = answer("exit code 1\n  shop.py:12 in price", passed=False, outcomes=[], output="")
    turns = converse(teacher(tmp_path), ("eval", "view", "report"), named, FULL_VIEW)
    assert turns[1].tool_calls[0].arguments == {"start": 1, "end": 200, "path": "shop.py"}
    assert turns[2].tool_calls[0].name == "report"


def test_the_heuristic_reports_the_last_frame_of_the_repository() -> None:
    text = "1 failed\nFAILED tests/test_a.py::test_b\n  tests/test_a.py:9 in test_b: f()\n  pkg/b.py:7 in g: 1/0"
    run, report = converse(StrategyPolicy(TRACEBACK), SEEKER, answer(text, outcomes=[FAILING_TEST]))
    assert run.tool_calls[0].name == "eval"
    arguments = report.tool_calls[0].arguments
    assert arguments["locations"] == [{"path": "pkg/b.py", "start": 7}]
    assert arguments["findings"] == [{"fact": 4, "claim": "last line of the traceback"}]


@pytest.mark.parametrize("strategy", [TRACEBACK, Investigator()])
def test_a_test_is_never_reported_as_the_place_of_the_bug(strategy: Strategy) -> None:
    in_test = {**FAILING_TEST, "frames": FAILING_TEST["frames"][:1]}
    text = "1 failed\nFAILED tests/test_a.py::test_b\n  tests/test_a.py:9 in test_b: f()"
    _, end = converse(StrategyPolicy(strategy), SEEKER, answer(text, outcomes=[in_test]))
    assert end.tool_calls == ()


@pytest.mark.parametrize("strategy", [TRACEBACK, SUSPECT])
@pytest.mark.parametrize("others", [(), ("", "")], ids=["at-once", "later"])
def test_a_heuristic_that_found_nothing_never_reports(strategy: OneLook, others: tuple[str, ...]) -> None:
    messages = [*OPENING]
    for number, text in enumerate(("3 passed", *others)):
        call = ToolCall(id=f"c{number}", name=strategy.tool)
        messages += [
            Completion(text="", tool_calls=(call,)).as_message(),
            tool_message(number, answer(text).model_copy(update={"tool": strategy.tool}), call),
        ]
    turn = StrategyPolicy(strategy).complete(messages, schemas(*LISTING))
    assert turn.tool_calls == ()
    assert turn.text.startswith("[report] ")


def test_a_script_finds_its_place_and_ends() -> None:
    script = [Completion(text=str(number), tool_calls=(ToolCall(id="c", name="eval"),)) for number in range(2)]
    assert [turn.text for turn in converse(ScriptedPolicy(script), ("eval",), "x")] == ["0", "1"]
    with pytest.raises(ScriptExhausted, match="it has only 2"):
        converse(ScriptedPolicy(script), ("eval",), "x", "y")


def test_a_run_is_replayed_task_by_task(tmp_path: Path, config: Callable[..., CollectConfig]) -> None:
    from gumshoe.records import Step
    from support.collect.small_trajectories import trajectory

    task, _ = make_task(tmp_path / "repo", 0)
    step = Step(index=0, message_index=2, completion=Completion(text="recorded"))
    ref = trajectory().task.model_copy(update={"id": task.id})
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(trajectory("a", task=ref, steps=(step,)))
    policy = make_policy(ReplayConfig(run=str(tmp_path / "run")), task, None, 0)
    assert (policy.kind, policy.trusted) == ("replay", False)
    assert policy.complete(OPENING, []).text == "recorded"
    other = task.model_copy(update={"id": "other"})
    with pytest.raises(PolicyError, match="no trajectory of task other"):
        make_policy(ReplayConfig(run=str(tmp_path / "run")), other, None, 0)


def test_the_first_suspect_is_reported() -> None:
    text = "2 functions run by 1 failing test, most suspicious first\n4-9 pkg/b.py B.g 1.00\n1-2 pkg/a.py f 0.71"
    suspects = [
        {"path": "pkg/b.py", "function": "B.g", "start": 4, "end": 9, "score": 1.0, "lines": [4]},
        {"path": "pkg/a.py", "function": "f", "start": 1, "end": 2, "score": 0.7071, "lines": [1]},
    ]
    ask, report = converse(StrategyPolicy(SUSPECT), LISTING, answer(text, failed=1, suspects=suspects, shown=2))
    assert ask.tool_calls[0].name == "suspects"
    assert report.tool_calls[0].arguments["locations"] == [{"path": "pkg/b.py", "start": 4, "end": 9}]
    assert report.tool_calls[0].arguments["findings"] == [{"fact": 1, "claim": "likeliest function"}]
