"""The solver that answers once, with more than one place in its pack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.packs import with_pack
from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.errors import ConfigError
from gumshoe.eval.arms.solvers.one_shot import AGENT, ShownFirst, limited, looks, trials
from gumshoe.records import Check, Completion, Finding, Message, StopReason, ToolCall, ToolSchema, WhatIfProbe
from support.eval.made import make_pack
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import make_task


class Remembering(ScriptedPolicy):
    """Keeps the last messages that it was asked with."""

    asked: Sequence[Message] = ()

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Completion:
        self.asked = messages
        return self._script[0]


def test_two_places_are_shown_in_one_turn_and_the_solver_is_asked(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    pack = make_pack(("shop.py", 3, 3), ("test_shop.py", 8, 9))
    shown = looks(pack)
    assert len(shown) == 2
    fix: dict[str, JsonValue] = {"path": "shop.py", "start": 3, "end": 3, "code": "        total = total - 10"}
    answer = Completion(text="", tool_calls=(ToolCall(id="fix", name="rewrite", arguments=fix),))
    solver = Remembering([answer])
    task = limited(with_pack(task, pack), pack)
    policy = ShownFirst(solver, shown)
    spec = EpisodeSpec(task, oracle)
    found = play_one(spec, make_agent(AGENT), policy, sandbox=LOCAL)
    question = solver.asked[-1].content
    assert question.index("# shop.py:1-6") < question.index("# test_shop.py:5-9") < question.index("each part that")
    assert [len(step.tool_calls) for step in found.steps] == [2, 1]
    assert (found.stop, found.resolved) == (StopReason.STEP_LIMIT, True)
    assert "+        total = total - 10" in found.patch


def test_the_text_of_a_pack_may_come_from_another_template(tmp_path: Path) -> None:
    task, _ = make_task(tmp_path / "repo", 0, runner="pytest")
    pack = make_pack(("shop.py", 3, 3))
    told = with_pack(task, pack, "Look at {{ pack.locations[0].path }}.").problem_statement
    assert told == f"{task.problem_statement.strip()}\n\nLook at shop.py."
    assert with_pack(task, pack, "{# nothing #}").problem_statement == task.problem_statement.strip()
    with pytest.raises(ConfigError, match="the prompt template is invalid: 'places' is undefined"):
        with_pack(task, pack, "{{ places }}")


def test_without_places_the_question_says_how_to_answer(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    answer = "```python\n# shop.py:3\n        total = total - 10\n```"
    solver = Remembering([Completion(text=answer)])
    spec = EpisodeSpec(limited(task, None), oracle)
    found = play_one(spec, make_agent(AGENT), ShownFirst(solver, ()), sandbox=LOCAL)
    assert "# path/to/file.py:12-14" in solver.asked[-1].content
    assert found.resolved


def test_a_change_that_helped_is_shown_as_code(tmp_path: Path) -> None:
    task, oracle = make_task(tmp_path / "repo", 0, runner="pytest")
    probe = WhatIfProbe(path="shop.py", line=3, do="replace total = total - 10", effect="1 test now passes: test_total")
    helped = Finding(claim="it helps", step=0, quote="", probe=probe, check=Check(status="confirmed", telling=True))
    not_run = helped.model_copy(update={"check": None})
    for finding in (helped, not_run):
        pack = make_pack(("shop.py", 3, 3)).model_copy(update={"findings": (finding,)})
        solver = Remembering([Completion(text="I do not know.")])
        spec = EpisodeSpec(limited(with_pack(task, pack), pack), oracle)
        play_one(spec, make_agent(AGENT), ShownFirst(solver, looks(pack), trials(pack)), sandbox=LOCAL)
        question = solver.asked[-1].content
        assert ("With this code instead, 1 test now passes: test_total:\n\n```python\n" in question) is finding.grounded
        assert ("        total = total - 10\n" in question) is finding.grounded
