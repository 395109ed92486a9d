"""Episodes of the regime `issue`: prompts and tools of their own; a reproduction never changes the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.commands.runs import check_pack
from gumshoe.collect.config import AgentConfig, InvestigatorConfig, SuspectConfig, TracebackConfig, VaryConfig
from gumshoe.collect.data.export.rows import SeekerView
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.collect.packs import pack_text
from gumshoe.collect.policies.registry import ScriptedPolicy, make_policy
from gumshoe.collect.policies.strategy import NEEDS_A_TEST
from gumshoe.collect.run.play import play_one
from gumshoe.env.diff import make_patch
from gumshoe.protocols import Policy
from gumshoe.records import Completion, Oracle, Task, ToolCall, Trajectory
from gumshoe.tools import Toolbox, make_tools
from gumshoe.tools.toolbox import DEBUG_TOOLS, REWRITE_TOOLS, SEEKER_TOOLS
from support.collect.small_trajectories import OPENING, answer, schemas
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import LOCAL

VISIBLE = b"from calc import add\n\n\ndef test_nothing():\n    assert add(2, 0) == 2\n"
HIDDEN = VISIBLE + b"\n\ndef test_add():\n    assert add(2, 2) == 4\n"
RIGHT = "from calc import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n"
WRONG = "from calc import add\n\n\ndef test_sum():\n    assert add(1, 2) == -1\n"
LOOK: tuple[str, dict[str, Any]] = ("pdb", {"command": "b calc.py:2\nc\np (a, b)"})
FIX: tuple[str, dict[str, Any]] = ("rewrite", {"path": "calc.py", "start": 2, "code": "    return a + b"})
SUBMIT: tuple[str, dict[str, Any]] = ("submit", {})
BUGGY, CLEAN = b"def add(a, b):\n    return a - b\n", b"def add(a, b):\n    return a + b\n"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Task, Oracle]:
    """A task whose bug only a hidden test shows, and its answer."""
    files = {"calc.py": BUGGY, "test_calc.py": VISIBLE}
    task = folder_task(tmp_path, files, problem_statement="add is wrong", regime="issue")
    oracle = Oracle(
        task_id=task.id,
        gold_patch=make_patch({"calc.py": (BUGGY, CLEAN)}),
        test_patch=make_patch({"test_calc.py": (VISIBLE, HIDDEN)}),
        fail_to_pass=("test_calc.py::test_add",),
    )
    return task, oracle


def reproduce(code: str) -> tuple[str, dict[str, Any]]:
    return "reproduce", {"code": code}


def script(*calls: tuple[str, dict[str, Any]]) -> ScriptedPolicy:
    made = (ToolCall(id=str(number), name=name, arguments=given) for number, (name, given) in enumerate(calls))
    return ScriptedPolicy([Completion(text="I look.", tool_calls=(call,)) for call in made])


def play(pair: tuple[Task, Oracle], policy: Policy, kind: str = "debug") -> Trajectory:
    agent = make_agent(AgentConfig(kind=kind))  # pyright: ignore[reportArgumentType]
    return play_one(EpisodeSpec(*pair), agent, policy, sandbox=LOCAL)


def test_an_agent_reproduces_repairs_and_submits(pair: tuple[Task, Oracle]) -> None:
    found = play(pair, script(("view", {"path": "calc.py"}), reproduce(RIGHT), LOOK, FIX, SUBMIT))
    texts = [observation.text for step in found.steps for observation in step.observations]
    assert texts[1].startswith("reproduced: 1 of 1 test fails")
    assert "(a, b) = (1, 2)" in texts[2]
    assert texts[4] == "submitted; your test passes"
    assert found.resolved
    assert found.patch == make_patch({"calc.py": (BUGGY, CLEAN)})
    assert found.tampering == ()
    row = SeekerView().row(found)
    assert "issue" in row["messages"][0]["content"]
    assert row["context_pack"]["reproduction"] == RIGHT
    assert "reproduce" in {tool["function"]["name"] for tool in row["tools"]}


def test_the_verdict_is_that_of_the_hidden_tests_whatever_was_reproduced(pair: tuple[Task, Oracle]) -> None:
    found = play(pair, script(reproduce(WRONG), FIX, SUBMIT, SUBMIT))
    assert found.resolved is True
    assert "test_add" not in found.model_dump_json()
    untouched = play(pair, script(reproduce(WRONG), SUBMIT))
    assert untouched.resolved is not True
    assert untouched.patch == ""


def test_a_seekers_report_on_a_reproduction_can_be_checked_anew(pair: tuple[Task, Oracle]) -> None:
    finding = {"fact": 4, "claim": "add is called with 1 and 2"}
    report = {"locations": [{"path": "calc.py", "start": 2}], "findings": [finding], "hypothesis": "it subtracts"}
    found = play(pair, script(reproduce(RIGHT), LOOK, ("report", report)), "seeker")
    assert found.context_pack is not None
    assert found.context_pack.reproduction == RIGHT
    assert "def test_sum" in pack_text(found.context_pack)
    for pack in (found.context_pack, check_pack(found.context_pack, pair[0], LOCAL)):
        (one,) = pack.findings
        assert (one.step, one.quote) == (1, "(a, b) = (1, 2)")
        assert one.check is not None
        assert one.check.status == "confirmed"


def test_prompts_and_tools_are_those_of_the_regime() -> None:
    for kind, tools in (("debug", DEBUG_TOOLS), ("rewrite", REWRITE_TOOLS), ("seeker", SEEKER_TOOLS), ("react", None)):
        agent = make_agent(AgentConfig(kind=kind))  # pyright: ignore[reportArgumentType]
        assert tools is None or agent.tools_in("debug") == tools
        assert set(agent.tools_in("issue")) - set(agent.tools_in("debug")) == {"reproduce"}
        prompt = agent.system_prompt(Toolbox(make_tools(agent.tools_in("issue"))).schemas, "issue")
        assert "Reproduce the issue with a small test" in prompt
        assert not any(words in prompt for words in ("whose tests fail", "failing tests"))
        assert len(prompt) < 700


def test_scripted_policies_report_no_test_that_is_not_about_the_issue(
    pair: tuple[Task, Oracle], tmp_path: Path
) -> None:
    (tmp_path / "test_calc.py").write_bytes(VISIBLE + b"\n\ndef test_unrelated():\n    assert add(1, 1) == 3\n")
    for config in (TracebackConfig(), SuspectConfig(), VaryConfig(), InvestigatorConfig()):
        found = play(pair, make_policy(config, pair[0], None, seed=0), "seeker")
        assert found.context_pack is None
        assert NEEDS_A_TEST in found.steps[-1].completion.text


def test_scripted_policies_look_into_a_reproduced_issue(pair: tuple[Task, Oracle]) -> None:
    call = ToolCall(id="c0", name="reproduce")
    seen = answer("reproduced: 1 of 1 test fails", status="reproduced").model_copy(update={"tool": "reproduce"})
    messages = [*OPENING, Completion(text="", tool_calls=(call,)).as_message(), tool_message(0, seen, call)]
    policy = make_policy(InvestigatorConfig(), pair[0], None, seed=0)
    (look,) = policy.complete(messages, schemas(*SEEKER_TOOLS)).tool_calls
    assert look.name in ("eval", "suspects")
