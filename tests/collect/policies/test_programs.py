"""The policies that are programs: teacher, heuristics, scripts and replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.config import (
    AgentConfig,
    CollectConfig,
    ReplayConfig,
    TeacherConfig,
)
from gumshoe.collect.data.store import RunFolder
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.conversation import parse_decision
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.episode.tool_output import outputs_of_steps, shown_code, tool_message
from gumshoe.collect.policies import make_policy
from gumshoe.collect.policies.gold import GoldEdit, read_gold
from gumshoe.collect.policies.heuristics import SUSPECT, TRACEBACK, OneLook
from gumshoe.collect.policies.investigator.policy import Investigator
from gumshoe.collect.policies.strategy import Strategy, StrategyPolicy
from gumshoe.collect.policies.teacher import Teacher
from gumshoe.collect.run.play import play_one
from gumshoe.env.diff import make_patch
from gumshoe.errors import PolicyError, ScriptExhausted, TaskError
from gumshoe.records import Completion, Limits, Observation, Oracle, Step, StopReason, ToolCall
from support.collect.small_trajectories import OPENING, answer, converse, schemas, trajectory
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import LOCAL
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
SUSPECTS = answer(
    "11-14 shop.py price 0.90\n4-8 shop.py discount 0.80",
    suspects=[
        {"path": "shop.py", "function": name, "start": start, "end": end, "score": score, "lines": [end], "distance": 1}
        for name, start, end, score in (("price", 11, 14, 0.9), ("discount", 4, 8, 0.8))
    ],
    shown=2,
    failed=1,
)
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


def answered(call: ToolCall) -> Observation:
    """What a project with two suspects answers, of which the first is not to blame."""
    if call.name == "eval":
        return answer("1 failed\n  ZeroDivisionError: division by zero", passed=False, outcomes=[FAILING_TEST])
    if call.name == "suspects":
        return SUSPECTS
    if call.name == "view":
        start, end = int(str(call.arguments["start"])), int(str(call.arguments["end"]))
        return answer("shop.py", path="shop.py", start=start, lines=BUGGY[start - 1 : end])
    if call.name == "pdb":
        line = int(str(call.arguments["command"]).splitlines()[0].rpartition(":")[2])
        stop = {"path": "shop.py", "line": line, "function": "f"}
        return answer("stopped", results=[{"command": "c", "output": "", "stop": stop}])
    return answer("nothing", variants=[])


def episode(folder: Path, seed: int) -> list[ToolCall]:
    """The calls of the teacher's episode with a seed."""
    policy, messages, called = teacher(folder, 0.25, seed), list(OPENING), list[ToolCall]()
    tools = schemas("listdir", "eval", "suspects", "view", "pdb", "whatif", "report")
    while not called or called[-1].name != "report":
        turn = policy.complete(messages, tools)
        (call,) = turn.tool_calls
        observation = answered(call).model_copy(update={"tool": call.name})
        messages += [turn.as_message(), tool_message(len(called), observation, call)]
        called.append(call)
    return called


def test_no_sequence_of_calls_is_more_than_a_fifth_of_the_teachers_episodes(tmp_path: Path) -> None:
    episodes = [episode(tmp_path, seed) for seed in range(100)]
    assert episodes[4] == episode(tmp_path, 4)
    routes = Counter(tuple(call.name for call in called) for called in episodes)
    assert routes.most_common(1)[0][1] <= 20
    assert 10 <= sum(any(call.arguments.get("start") == 11 for call in called) for called in episodes) <= 90
    for called in episodes:
        locations: Any = called[-1].arguments["locations"]
        assert locations[0]["path"] == "shop.py"
        assert locations[0]["start"] <= 7 <= locations[0]["end"]


def test_a_teacher_goes_nowhere_that_nothing_has_named(tmp_path: Path) -> None:
    turns = converse(teacher(tmp_path), ("eval", "view", "report"), FAILING)
    assert turns[-1].tool_calls == ()
    turns = converse(teacher(tmp_path), ("eval", "view", "rewrite", "submit"), FAILING)
    assert [turn.tool_calls[0].name for turn in turns] == ["eval", "submit"]
    named = answer("exit code 1\n  shop.py:12 in price", passed=False, outcomes=[], output="")
    turns = converse(teacher(tmp_path), ("eval", "view", "report"), named, FULL_VIEW)
    assert turns[1].tool_calls[0].arguments == {"start": 1, "end": 200, "path": "shop.py"}
    assert turns[2].tool_calls[0].name == "report"


def test_a_heuristic_reports_the_last_frame_of_the_repository_or_the_first_suspect() -> None:
    text = "1 failed\nFAILED tests/test_a.py::test_b\n  tests/test_a.py:9 in test_b: f()\n  pkg/b.py:7 in g: 1/0"
    run, report = converse(StrategyPolicy(TRACEBACK), SEEKER, answer(text, outcomes=[FAILING_TEST]))
    assert run.tool_calls[0].name == "eval"
    arguments = report.tool_calls[0].arguments
    assert arguments["locations"] == [{"path": "pkg/b.py", "start": 7}]
    assert arguments["findings"] == [{"fact": 4, "claim": "last line of the traceback"}]
    ask, report = converse(StrategyPolicy(SUSPECT), LISTING, SUSPECTS)
    assert ask.tool_calls[0].name == "suspects"
    assert report.tool_calls[0].arguments["locations"] == [{"path": "shop.py", "start": 11, "end": 14}]
    assert report.tool_calls[0].arguments["findings"] == [{"fact": 1, "claim": "likeliest function"}]


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


def test_a_run_is_replayed_task_by_task(tmp_path: Path, config: Callable[..., CollectConfig]) -> None:
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


COUNT = 240
MIDDLE = 120
LONG = "  # " + "x" * 90


def long_function(middle: str) -> str:
    """Far more text than an observation may have."""
    lines = [f"    total += {number}{LONG}" for number in range(COUNT)]
    lines[MIDDLE] = middle
    return "\n".join(["def add(total):", *lines, "    return total", ""])


@pytest.mark.parametrize("seed", range(2))
def test_it_reads_on_to_a_line_behind_a_long_view(seed: int, tmp_path: Path) -> None:
    wrong, right = long_function("    total -= 120"), long_function("    total += 120")
    test = f"from long import add\n\n\ndef test_add():\n    assert add(0) == {sum(range(COUNT))}\n"
    task = folder_task(
        tmp_path,
        {"long.py": wrong, "test_long.py": test},
        problem_statement="test_long.py::test_add fails",
        limits=Limits(command_timeout_s=300),
    )
    oracle = Oracle(task_id=task.id, gold_patch=make_patch({"long.py": (wrong.encode(), right.encode())}))
    policy = make_policy(TeacherConfig(explore=0.0), task, oracle, seed)
    agent = make_agent(AgentConfig(kind="seeker"))
    found = play_one(EpisodeSpec(task), agent, policy, sandbox=LOCAL)
    views = [output for output in outputs_of_steps(found.steps) if output.tool == "view"]
    line = MIDDLE + 2
    assert not any(view.observation.truncated for view in views)
    assert [line in shown_code(view) for view in views] == [False, True]
    assert views[1].data["start"] == views[0].data["end"] + 1
    assert found.stop is StopReason.REPORTED
    assert found.context_pack is not None
    assert found.context_pack.locations[0].start <= line <= found.context_pack.locations[0].end
    assert unseen(found) == []


def patch(before: str | None, after: str | None) -> Oracle:
    texts = tuple(text.encode() if text is not None else None for text in (before, after))
    return Oracle(task_id="t", gold_patch=make_patch({"a.py": (texts[0], texts[1])}))


LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.mark.parametrize(
    "after",
    [
        LINES.replace("line 3\n", "new\n"),
        LINES.replace("line 3\n", ""),
        LINES.replace("line 3\n", "line 3\nnew\nnewer\n"),
        LINES.replace("line 3\n", "a\nb\n").replace("line 5\n", "").replace("line 18\n", "z\nline 18\n"),
        "top\n" + LINES,
        LINES + "bottom\n",
        LINES.replace("line 1\n", ""),
    ],
)
def test_changes_make_exactly_the_gold_patch(after: str) -> None:
    lines = LINES.splitlines(keepends=True)
    for change in read_gold(patch(LINES, after)).changes:
        assert change.start is not None
        lines[change.start - 1 : change.end] = change.code.splitlines(keepends=True)
    assert "".join(lines) == after
    assert read_gold(patch(None, after)).changes == (GoldEdit("a.py", None, None, after),)


def test_an_import_is_no_cause_unless_nothing_else_is_changed() -> None:
    before = "import os\n\n\ndef here():\n    return os.curdir\n"
    imported = before.replace("import os\n", "import os\nimport sys\n")
    both = read_gold(patch(before, imported.replace("curdir", "getcwd()")))
    assert both.lines == {"a.py": {1, 5}}
    assert (both.cause, both.places) == ({"a.py": {5}}, [("a.py", 5)])
    assert read_gold(patch(before, imported)).cause == {"a.py": {1}}


def test_patches_that_edits_cannot_make_are_refused() -> None:
    with pytest.raises(TaskError, match="removes"):
        read_gold(patch("x\n", None))
    with pytest.raises(TaskError, match="empty gold patch"):
        read_gold(Oracle(task_id="t", gold_patch=""))
