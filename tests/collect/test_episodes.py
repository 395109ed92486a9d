"""One episode from its first message to its end, interrupted and taken up again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.config import AgentConfig, LimitsConfig
from gumshoe.collect.data.export.rows import agent_decision_rows
from gumshoe.collect.data.journal import Diverged, Journal
from gumshoe.collect.episode.conversation import as_text_messages, elide
from gumshoe.collect.episode.episode import NOT_RUN
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.episode.tool_output import AGAIN
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.protocols import Policy
from gumshoe.records import Completion, Decision, Limits, Message, StopReason, ToolCall, ToolSchema, Trajectory, Usage
from gumshoe.tools.calls.parsing import render_text_calls
from gumshoe.tools.toolbox import DEBUG_TOOLS
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import make_task

FIX = {"path": "shop.py", "code": "        total = total - 10", "start": 7}


def say(*calls: tuple[str, dict[str, Any]], text: str = "[seek 0.5] why", **extra: Any) -> Completion:
    asked = tuple(ToolCall(id=f"c{n}", name=name, arguments=arguments) for n, (name, arguments) in enumerate(calls))
    return Completion(text=text, tool_calls=asked, **extra)


def play(tmp_path: Path, *script: Completion, policy: Policy | None = None, **settings: Any) -> Trajectory:
    task, oracle = make_task(tmp_path / "repo", 3)
    task = task.model_copy(update={"limits": Limits(steps=settings.pop("steps", 20))})
    agent = make_agent(settings.pop("agent", AgentConfig()))
    return play_one(EpisodeSpec(task, oracle, 0, 1), agent, policy or ScriptedPolicy(script), sandbox=LOCAL, **settings)


class Watched(ScriptedPolicy):
    """Keeps what it was shown."""

    def __init__(self, *script: Completion) -> None:
        super().__init__(script)
        self.messages: list[list[Message]] = []
        self.tools: list[list[str]] = []

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        self.messages.append(list(messages))
        self.tools.append([tool.name for tool in tools])
        return super().complete(messages, tools)


def test_messages_and_steps_tell_the_same_story(tmp_path: Path) -> None:
    found = play(
        tmp_path,
        say(("view", {"path": "shop.py"}), ("eval", {})),
        say(("rewrite", FIX), text="[edit 0.9] I mend it."),
        say(("submit", {}), ("rewrite", {**FIX, "code": "late"}), text="done"),
    )
    assert (found.stop, found.resolved) == (StopReason.SUBMITTED, True)
    assert [message.role for message in found.messages] == [
        *("system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool", "tool")
    ]
    after = found.steps[2].observations[1].failure
    assert after is not None
    assert after.kind == NOT_RUN
    assert found.messages[1].content == "Members get 14 off instead of 10."
    assert found.messages[3].content.startswith("[step 0] shop.py 1-14 of 14 lines")
    assert found.messages[4].content.startswith("[step 0] exit code 1")
    assert found.messages[6].content.startswith("[step 1] rewrote shop.py")
    assert [step.message_index for step in found.steps] == [2, 5, 7]
    assert [step.decision for step in found.steps] == [Decision.VERIFY, Decision.EDIT, Decision.EDIT]
    assert [step.stated for step in found.steps] == [Decision.SEEK, Decision.EDIT, None]
    assert [step.confidence for step in found.steps] == [0.5, 0.9, None]
    assert found.steps[1].rationale == "I mend it."
    assert [step.reward for step in found.steps] == [0.0, 0.0, 1.0]
    assert "+        total = total - 10" in found.patch
    assert tuple(schema.name for schema in found.tools) == DEBUG_TOOLS
    assert found.provenance.sandbox == "local"
    assert Trajectory.model_validate_json(found.model_dump_json()) == found


def test_an_episode_without_submit_is_still_measured(tmp_path: Path) -> None:
    assert play(tmp_path, say(("rewrite", FIX)), steps=1).resolved is True
    untouched = play(tmp_path, say(("eval", {})), steps=1)
    assert (untouched.stop, untouched.resolved) == (StopReason.STEP_LIMIT, False)


def test_a_nudge_shows_a_call_that_was_not_just_made_and_says_what_was_wrong(tmp_path: Path) -> None:
    wrong = Completion(text='```json\n{"name": "test_shop.py::test_total", "arguments": {"path": "shop.py"}}\n```')
    idle = Completion(text="I think")
    found = play(tmp_path, wrong, say(("eval", {})), idle, idle, say(("suspects", {}), ("eval", {})), wrong, idle, idle)
    told = [message.content for message in found.messages if message.role == "user"][1:]
    assert (found.stop, len(found.steps)) == (StopReason.NO_TOOL_CALL, 8)
    assert {step.decision for step in found.steps if not step.tool_calls} == {None}
    assert [text.split(" Call one of: ")[0] for text in told] == 2 * [
        "There is no tool called 'test_shop.py::test_total'.",
        "You called no tool.",
        "You gave the same answer as before, and called no tool.",
    ]
    shown = [json.loads(text.split("<tool_call>")[1].split("</tool_call>")[0])["name"] for text in told]
    assert shown == ["eval", "suspects", "suspects", "listdir", "listdir", "listdir"]


def test_a_call_that_is_repeated_with_the_same_answer_is_told_so(tmp_path: Path) -> None:
    looks = ("view", {"path": "shop.py"})
    steps = ("pdb", {"command": "p 1"})
    other = ("view", {"path": "test_shop.py"})
    found = play(tmp_path, say(looks), say(looks), say(other), say(looks), say(steps), say(steps), say(("submit", {})))
    told = [message.content for message in found.messages if message.role == "tool"]
    assert [AGAIN in text for text in told] == [False, True, False, False, False, False, False]
    assert told[1] == f"[step 1] {found.steps[1].observations[0].text}{AGAIN}"


def test_the_debugger_of_debug_5_appears_after_five_rewrites(tmp_path: Path) -> None:
    edits = [say(("rewrite", {**FIX, "code": f"        total = total - {n}"})) for n in range(20, 25)]
    stack = say(("pdb", {"command": "w"}))
    policy = Watched(stack, *edits, stack, say(("submit", {})))
    found = play(tmp_path, policy=policy, agent=AgentConfig(kind="debug_5"))
    assert ["pdb" in names for names in policy.tools] == [False] * 6 + [True] * 2
    failures = [step.observations[0].failure for step in found.steps]
    assert [failure and failure.kind for failure in failures] == ["locked_tool"] + [None] * 7


def test_limits_end_an_episode_as_truncated(tmp_path: Path) -> None:
    costly = say(("eval", {}), usage=Usage(prompt_tokens=90, completion_tokens=10, cost_usd=0.5))
    for limits, stop, steps in (
        (LimitsConfig(tokens=150), StopReason.TOKEN_LIMIT, 2),
        (LimitsConfig(cost_usd=0.9), StopReason.COST_LIMIT, 2),
        (LimitsConfig(steps=3), StopReason.STEP_LIMIT, 3),
        (LimitsConfig(wall_s=1e-6), StopReason.WALL_LIMIT, 1),
    ):
        found = play(tmp_path, *[costly] * 5, limits=limits)
        assert (found.stop, len(found.steps)) == (stop, steps)
    assert found.usage.prompt_tokens == 90


def test_a_replay_that_comes_out_differently_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    with Journal(file, {}) as journal:
        play(tmp_path, say(("view", {"path": "shop.py"})), steps=1, journal=journal)
    file.write_text(file.read_text().replace("Prices.", "Costs."), encoding="utf-8")
    with Journal(file, {}) as journal, pytest.raises(Diverged):
        play(tmp_path, steps=1, journal=journal)


def test_react_describes_calls_and_answers_tools_in_plain_text(tmp_path: Path) -> None:
    def wants(name: str, arguments: dict[str, Any]) -> Completion:
        call = ToolCall(id="", name=name, arguments=arguments)
        return Completion(text=f"[seek 0.5] why\n{render_text_calls((call,))}")

    script = [wants("view", {"path": "shop.py"}), Completion(text="hm"), wants("rewrite", FIX), wants("submit", {})]
    policy = Watched(*script)
    found = play(tmp_path, policy=policy, agent=AgentConfig(kind="react"))
    assert (found.stop, found.resolved, found.policy.agent) == (StopReason.SUBMITTED, True, "react")
    assert policy.tools == [[]] * 4
    last = policy.messages[-1]
    assert [message.role for message in last] == ["system", "user"] + ["assistant", "user"] * 3
    assert "<tools>" in last[0].content
    assert '"name": "rewrite"' in last[0].content
    assert '<tool_call>\n{"name": "view"' in last[2].content
    assert last[3].content.startswith("<tool_response>\n[step 0] shop.py 1-14 of 14 lines")
    assert last[5].content.startswith("You called no tool.")
    assert [message.content for message in as_text_messages(found.messages[:8], found.tools)] == [
        message.content for message in last
    ]
    assert [step.tool_calls[0].name for step in found.steps if step.tool_calls] == ["view", "rewrite", "submit"]
    assert (found.steps[0].confidence, found.steps[0].rationale) == (0.5, "why")


def test_what_does_not_fit_is_left_out_by_a_rule_that_the_trace_records(tmp_path: Path) -> None:
    policy = Watched(*[say(("view", {"path": "shop.py"}))] * 12, say(("submit", {})))
    found = play(tmp_path, policy=policy, agent=AgentConfig(context_tokens=1400))
    assert len(found.steps) == 13
    positions = [step.elided for step in found.steps]
    assert positions == sorted(positions)
    assert positions[0] == 0
    assert 1 < len(set(positions)) < 8
    for step, saw in zip(found.steps, policy.messages, strict=True):
        again = elide(found.messages[: step.message_index], step.elided)
        assert [message.model_dump() for message in again] == [message.model_dump() for message in saw]
    assert all("[left out" not in message.content for message in found.messages)
    last = policy.messages[-1]
    assert last[3].content.startswith("[step 0] [left out: ")
    assert "def discount" in last[-1].content
    assert len(last[-1].content) == len(found.messages[-3].content)
    rows = list(agent_decision_rows(found))
    assert [len(row["prompt"]) for row in rows] == [len(saw) for saw in policy.messages]
    assert [message["content"] for message in rows[-1]["prompt"]] == [message.content for message in last]
