"""A person as a policy: typing calls, looking at turns, editing one, stopping."""

from __future__ import annotations

import io

import pytest

from gumshoe.collect.policies.human import HumanPolicy
from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.records import Completion, ToolCall
from support.collect.conversations import OPENING, converse, schemas


def test_a_person_types_calls() -> None:
    typed = io.StringIO("tools\n\n[seek 0.5] a look\nview path=a.py start=3 x='a b'\n")
    shown = io.StringIO()
    completion = HumanPolicy(typed, shown).complete(OPENING, schemas("view"))
    assert completion.text == "[seek 0.5] a look"
    assert completion.tool_calls == (
        ToolCall(id="call-0", name="view", arguments={"path": "a.py", "start": 3, "x": "a b"}),
    )
    assert "--- user\nU" in shown.getvalue()
    for ending in ("", "quit\n"):
        with pytest.raises(KeyboardInterrupt):
            HumanPolicy(io.StringIO(ending), shown).complete(OPENING, [])


def test_a_person_looks_at_each_turn_edits_one_and_takes_over() -> None:
    from gumshoe.collect.policies.step import StepPolicy

    script = [Completion(text=f"turn {n}", tool_calls=(ToolCall(id=f"c{n}", name="eval"),)) for n in range(3)]
    typed = io.StringIO("\ne\ne view path=a.py\nt\nlistdir\ngrep pattern=x\n")
    shown = io.StringIO()
    policy = StepPolicy(ScriptedPolicy(script), lambda: None, typed, shown)
    assert policy.kind == "scripted"
    turns = converse(policy, ("eval", "view"), "one", "two", "three")
    assert [turn.tool_calls[0].name for turn in turns] == ["eval", "view", "listdir", "grep"]
    assert turns[1].text == "turn 1"
    assert policy.kind == "scripted+human"
    assert "--- scripted wants\nturn 0" in shown.getvalue()
    assert "[step 0] one" in shown.getvalue()
    policy.close()


def test_a_person_may_stop() -> None:
    from gumshoe.collect.policies.step import StepPolicy
    from gumshoe.collect.run.control import Interrupted

    def stop() -> None:
        raise Interrupted

    script = ScriptedPolicy([Completion(text="x")])
    for typed in ("q\n", ""):
        with pytest.raises(Interrupted):
            StepPolicy(script, stop, io.StringIO(typed), io.StringIO()).complete(OPENING, [])
