"""An arm may have an agent of its own, whole or as a change to that of the evaluation."""

from __future__ import annotations

from typing import Any

import pytest

from gumshoe.config import validate
from gumshoe.eval.config import EvalConfig

COMMON = {"kind": "rewrite", "tools": ["view", "rewrite"], "nudges": 2}


@pytest.mark.parametrize(
    ("common", "own", "whole"),
    [
        (COMMON, {"nudges": 5}, {**COMMON, "nudges": 5}),
        (COMMON, {"tools": ["grep"]}, {**COMMON, "tools": ["grep"]}),
        (COMMON, {}, COMMON),
        ({"tools": ["eval", "report"]}, {"nudges": 5}, {"kind": "seeker", "tools": ["eval", "report"], "nudges": 5}),
        (None, {"nudges": 5}, {"kind": "seeker", "tools": None, "nudges": 5}),
        (COMMON, {"kind": "seeker"}, {"kind": "seeker", "tools": None, "nudges": 3}),
        (COMMON, {"kind": "debug", "nudges": 5}, {"kind": "debug", "tools": None, "nudges": 5}),
    ],
)
def test_an_agent_without_a_kind_changes_that_of_the_evaluation(
    common: dict[str, Any] | None, own: dict[str, Any], whole: dict[str, Any]
) -> None:
    given = {
        "out": "x",
        "tasks": {"source": "casebook"},
        "arms": [{"name": "a", "policy": {"kind": "traceback"}, "agent": own}],
        **({} if common is None else {"agent": common}),
    }
    made = validate(EvalConfig, given, origin="test")
    (arm,) = made.arms
    assert arm.agent is not None
    assert arm.agent.model_dump(mode="json", include=set(whole)) == whole
    assert validate(EvalConfig, made.model_dump(mode="json"), origin="test") == made
