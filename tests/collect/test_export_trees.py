"""The views of trees: pairs of decisions for DPO, and episodes with a label a step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest

from gumshoe.collect.data.export import export_runs
from gumshoe.collect.data.export.rows import Dropped
from gumshoe.collect.data.export.trees import TreeRows
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.records import BranchPoint, Completion, Decision, Message, Observation, Score, Step, ToolCall, Trajectory
from gumshoe.storage import write_jsonl
from support.collect.small_trajectories import trajectory

OPENING = (Message(role="system", content="You debug."), Message(role="user", content="It fails."))


def step(messages: list[Message], index: int, name: str, **arguments: Any) -> Step:
    """A turn, which is added to the messages."""
    call = ToolCall(id=f"c{index}", name=name, arguments=arguments)
    completion = Completion(text=f"I call {name}.", tool_calls=(call,))
    seen = Observation(tool=name, text=f"{name} answered")
    made = Step(
        index=index,
        message_index=len(messages),
        decision=Decision.SEEK if name == "view" else Decision.SUBMIT,
        completion=completion,
        observations=(seen,),
    )
    messages += [completion.as_message(), tool_message(index, seen, call)]
    return made


def episode(name: str, outcome: float | None, *lines: int) -> Trajectory:
    """One that looks at some lines and submits; `name` is its id, and `PARENT/STEP.NUMBER` of a branch."""
    messages = list(OPENING)
    steps = [step(messages, index, "view", path="a.py", start=line) for index, line in enumerate(lines)]
    steps.append(step(messages, len(steps), "submit"))
    parent, _, place = name.rpartition("/")
    return trajectory(
        name,
        messages=tuple(messages),
        steps=tuple(steps),
        scores=(Score(name="resolved", value=outcome),),
        branch=BranchPoint(parent=parent, step=int(place.partition(".")[0])) if parent else None,
    )


TREE = [
    episode("t", 1.0, 1, 2),
    episode("t/1.1", 0.0, 1, 3),
    episode("t/1.2", 0.0, 1, 2),
    episode("t/1.3", None, 1, 4),
    episode("t/1.1/2.1", 1.0, 1, 3, 9),
]


def test_a_pair_is_two_decisions_that_differ_in_what_they_were_worth() -> None:
    rows = list(TreeRows(lambda: TREE).preferences(TREE[0]))
    assert [row["id"] for row in rows] == ["t/1/0>1", "t/1/1>2"], "what has no outcome, or calls the same, is no pair"
    first, second = rows
    assert [message["role"] for message in first["prompt"]] == ["system", "user", "assistant", "tool"]
    assert first["chosen"][0]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py", "start": 2}
    assert first["rejected"][0]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py", "start": 3}
    assert (first["chosen_value"], first["rejected_value"]) == (1.0, 0.5)
    assert (first["chosen_count"], first["rejected_count"]) == (1, 2)
    assert (second["chosen_value"], second["rejected_value"]) == (0.5, 0.0)
    deeper = list(TreeRows(lambda: TREE).preferences(TREE[1]))
    assert [row["id"] for row in deeper] == ["t/1.1/2/1>0"]
    with pytest.raises(Dropped, match="none of its decisions branches"):
        list(TreeRows(lambda: TREE).preferences(TREE[4]))


def test_every_step_of_an_episode_has_a_value_a_label_and_its_text() -> None:
    rows = TreeRows(lambda: TREE)
    whole = rows.scored(TREE[0])
    assert whole["values"] == [0.5, 1.0, 1.0]
    assert whole["counts"] == [4, 1, 1]
    assert whole["advantages"] == [None, 0.75, None]
    assert whole["labels"] == [True, True, True]
    assert whole["prompt"].startswith("You debug.")
    assert whole["prompt"].endswith("It fails.")
    assert whole["completions"][0].startswith("I call view.\n<tool_call>")
    assert whole["completions"][1].startswith("<tool_response>\n[step 0] view answered\n</tool_response>\nI call view.")
    assert len(whole["completions"]) == 3
    branch = rows.scored(TREE[2])
    assert branch["values"] == [0.5, 0.0, 0.0], "the steps before the branch are its parent's"
    assert branch["labels"] == [True, False, False]
    with pytest.raises(Dropped, match="no outcome"):
        rows.scored(TREE[3])


def test_a_report_that_a_probe_contradicts_is_the_worse_one() -> None:
    def reported(name: str, line: int, status: str) -> Trajectory:
        made = episode(name, 0.0, 1)
        finding = {"claim": "x is 3", "step": 0, "quote": "x = 3", "check": {"status": status}}
        last = made.steps[-1]
        call = last.tool_calls[0].model_copy(update={"arguments": {"line": line}})
        seen = last.observations[0].model_copy(update={"data": {"context_pack": {"findings": [finding]}}})
        changed = last.completion.model_copy(update={"tool_calls": (call,)})
        step = last.model_copy(update={"observations": (seen,), "completion": changed})
        return made.model_copy(update={"steps": (*made.steps[:-1], step)})

    tree = [reported("t", 1, "contradicted"), reported("t/1.1", 2, "confirmed"), reported("t/1.2", 3, "confirmed")]
    rows = TreeRows(lambda: tree)
    assert [row["id"] for row in rows.preferences(tree[0])] == ["t/1/1>0", "t/1/2>0"]
    assert rows.scored(tree[0])["contradicted"] == [False, True]
    solved = tree[0].model_copy(update={"scores": (Score(name="resolved", value=1.0),)})
    assert TreeRows(lambda: [solved]).scored(solved)["labels"] == [True, False]


def test_the_views_load_with_datasets_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    write_jsonl(run / "trajectories.jsonl", TREE)
    result = export_runs([run], tmp_path / "out", views=["preferences", "steps_scored"], test_share=0)
    assert {view: counts["train"] for view, counts in result.rows.items()} == {"preferences": 3, "steps_scored": 4}
    assert result.dropped["preferences"] == {"none of its decisions branches": 3}

    def load(view: str) -> Any:
        return datasets.load_dataset(str(tmp_path / "out"), view, cache_dir=str(tmp_path / "cache"), split="train")

    pairs, scored = load("preferences"), load("steps_scored")
    assert {"prompt", "chosen", "rejected", "tools"} <= set(pairs.column_names)
    assert pairs[0]["chosen"][0]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py", "start": 2}
    assert {"prompt", "completions", "labels"} <= set(scored.column_names)
    assert scored[0]["labels"] == [True, True, True]
    assert "`preferences`: two decisions tried in one place" in (tmp_path / "out" / "README.md").read_text()
