"""A person who decides, or who looks at each turn of another policy."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest

from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.policies.human import HumanPolicy
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.records import Completion, ToolCall
from support.collect.conversations import OPENING, converse, schemas

Make = Callable[..., Path]


def test_a_person_steps_through_an_episode_and_leaves_it_open(config_file: Make, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "gumshoe", "collect", str(config_file(2)), "--step"]
    done = subprocess.run(argv, input="\n\nq\n", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stdout.count("teacher wants") == 3
    assert "[step 1] " in done.stdout
    (journal,) = (tmp_path / "run" / "journal").glob("*.jsonl")
    assert journal.read_text().count('"completion"') == 2


def test_a_person_may_take_the_models_place(config_file: Make, tmp_path: Path) -> None:
    config = config_file(1)
    argv = [sys.executable, "-m", "gumshoe", "collect", str(config), "-p", "policy.model=human"]
    left = subprocess.run(argv, input="eval\nquit\n", capture_output=True, text=True, timeout=120, check=False)
    assert left.returncode == 130, left.stderr
    assert "run the same command again to resume" in left.stdout
    typed = "[seek 0.5] what else?\nlistdir\nsubmit\n"
    done = subprocess.run(argv, input=typed, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = read_trajectories(tmp_path / "run")
    assert (found.policy.kind, found.stop.value) == ("human", "submitted")
    assert [step.tool_calls[0].name for step in found.steps] == ["eval", "listdir", "submit"]
    assert found.steps[1].rationale == "what else?"


@pytest.mark.parametrize(
    ("options", "prompt", "typed"), [(("-p", "policy={kind: human}"), "> ", "eval"), (("--step",), "step> ", "")]
)
def test_ctrl_c_at_a_prompt_stops_at_once_and_keeps_the_turns(
    config_file: Make, tmp_path: Path, options: tuple[str, ...], prompt: str, typed: str
) -> None:
    argv = ["-m", "gumshoe", "collect", str(config_file(1)), *options]
    terminal = pexpect.spawn(sys.executable, argv, encoding="utf-8", timeout=120)
    terminal.expect_exact(prompt)
    terminal.sendline(typed)
    terminal.expect_exact(prompt)
    terminal.sendintr()
    terminal.expect_exact("0 of 1 episodes")
    terminal.expect_exact("run the same command again to resume")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130
    (journal,) = (tmp_path / "run" / "journal").glob("*.jsonl")
    assert journal.read_text().count('"completion"') == 1


def test_a_person_types_calls() -> None:
    typed = io.StringIO("tools\n\n[seek 0.5] a look\nview path=a.py start=3 x='a b'\n")
    shown = io.StringIO()
    completion = HumanPolicy(None, typed, shown).complete(OPENING, schemas("view"))
    assert completion.text == "[seek 0.5] a look"
    assert completion.tool_calls == (
        ToolCall(id="call-0", name="view", arguments={"path": "a.py", "start": 3, "x": "a b"}),
    )
    assert "--- user\nU" in shown.getvalue()


def test_a_person_looks_at_each_turn_edits_one_and_takes_over() -> None:
    script = [Completion(text=f"turn {n}", tool_calls=(ToolCall(id=f"c{n}", name="eval"),)) for n in range(3)]
    typed = io.StringIO("\ne\ne view path=a.py\nt\nlistdir\ngrep pattern=x\n")
    shown = io.StringIO()
    policy = HumanPolicy(ScriptedPolicy(script), typed, shown)
    assert policy.kind == "scripted"
    turns = converse(policy, ("eval", "view"), "one", "two", "three")
    assert [turn.tool_calls[0].name for turn in turns] == ["eval", "view", "listdir", "grep"]
    assert turns[1].text == "turn 1"
    assert policy.kind == "scripted+human"
    assert "--- scripted wants\nturn 0" in shown.getvalue()
    assert "[step 0] one" in shown.getvalue()
    policy.close()


def test_a_person_may_stop() -> None:
    script = ScriptedPolicy([Completion(text="x")])
    for inner, typed in ((script, "q\n"), (script, ""), (None, "quit\n"), (None, "")):
        with pytest.raises(KeyboardInterrupt):
            HumanPolicy(inner, io.StringIO(typed), io.StringIO()).complete(OPENING, [])
