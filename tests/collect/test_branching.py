"""Trees: decisions tried beside each other, each played on to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from gumshoe.collect.commands.collect import collect
from gumshoe.collect.commands.runs import summarize
from gumshoe.collect.config import BranchConfig, CollectConfig
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.collect.data.tree import Node, Trees, node_of
from gumshoe.collect.run.branching import lacks_branches
from gumshoe.env import DebugEnv
from gumshoe.records import BranchPoint, Decision, StopReason, ToolCall, Trajectory
from support.sandboxes.sandbox_backends import LOCAL
from support.shop_tasks import make_task

Make = Callable[..., CollectConfig]
SEEK, EDIT = Decision.SEEK, Decision.EDIT


def varied(config: Make, tasks: int = 1, *, options: dict[str, Any] | None = None, **changes: Any) -> CollectConfig:
    policy = {"kind": "custom", "path": "support.collect.policies:Varied", "options": options or {}}
    return config(tasks, policy=policy, **{"branch": {"at": "edit", "width": 4}, **changes})


def played(made: CollectConfig) -> dict[str, Trajectory]:
    """What the run folder holds, by id; every id is there once."""
    found = list(read_trajectories(Path(made.out)))
    assert max(Counter(one.id for one in found).values()) == 1
    return {one.id: one for one in found}


def amount(trajectory: Trajectory) -> int:
    (added,) = [line for line in trajectory.patch.splitlines() if line.startswith("+ ")]
    return int(added.split()[-1])


def test_alternatives_are_tried_at_a_decision_and_played_to_their_end(config: Make) -> None:
    made = varied(config)
    result = collect(made)
    assert (result.planned, result.finished, result.branches, result.stopped) == (1, 1, 3, None)
    root, *branches = played(made).values()
    assert [one.id for one in branches] == [f"{root.id}/2.{number}" for number in (1, 2, 3)]
    for one in branches:
        assert one.branch == BranchPoint(parent=root.id, step=2)
        assert one.messages[:6] == root.messages[:6]
        assert one.steps[:2] == root.steps[:2]
        assert one.stop is StopReason.SUBMITTED
    amounts = [amount(one) for one in (root, *branches)]
    assert [one.resolved for one in (root, *branches)] == [each == 10 for each in amounts], "each has its own files"
    assert len(set(amounts)) > 1
    assert len({one.provenance.seed for one in (root, *branches)}) == 4
    assert summarize(Path(made.out))["whole_trees"] == 1


def test_branches_branch_again_where_the_tree_is_deeper(config: Make) -> None:
    made = varied(config, branch={"at": "any", "width": 2, "depth": 3, "skip": 1}, eval_on_submit=False)
    assert collect(made).branches == 7
    found = played(made)
    assert Counter(one.branch.step if one.branch else None for one in found.values()) == {None: 1, 1: 1, 2: 2, 3: 4}
    root = next(one for one in found.values() if one.branch is None)
    deepest = found[f"{root.id}/1.1/2.1/3.1"]
    assert deepest.branch == BranchPoint(parent=f"{root.id}/1.1/2.1", step=3)
    assert amount(deepest) == amount(found[f"{root.id}/1.1/2.1"])


def test_what_a_branch_did_is_gone_from_the_tools_and_what_came_before_is_not(tmp_path: Path) -> None:
    task, _ = make_task(tmp_path / "repo", 0)
    with closing(DebugEnv(task, tools=["view", "bash", "pdb", "report"], sandbox=LOCAL)) as env:
        env.reset(seed=0)
        env.step(ToolCall(id="1", name="view", arguments={"path": "shop.py"}))
        before = env.snapshot()
        assert env.is_whole(before)
        env.step(ToolCall(id="2", name="bash", arguments={"command": "cd /; X=1"}))
        assert not env.is_whole(env.snapshot()), "a variable that is not exported would be lost"
        env.restore(before)
        assert [one.tool for one in env.toolbox.history] == ["view"]
        assert env.is_whole(env.snapshot())
        *_, info = env.step(ToolCall(id="3", name="bash", arguments={"command": "echo $X; ls"}))
        assert info["observation"].text.split() == ["check.py", "shop.py"]
        thread = "!import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()"
        env.step(ToolCall(id="4", name="pdb", arguments={"command": f"b shop.py:7\nc\n{thread}"}))
        assert not env.is_whole(env.snapshot()), "a program with threads cannot be kept"


def test_reports_are_compared_with_the_gold_patch(config: Make) -> None:
    policy = {"kind": "custom", "path": "support.collect.policies:Reporter"}
    made = config(1, policy=policy, agent={"kind": "seeker"}, branch={"at": "report", "width": 8})
    collect(made)
    found = list(played(made).values())
    scores = [one.score("line_f1") for one in found]
    assert scores == [float(one.context_pack.locations[0].start == 7) for one in found if one.context_pack]
    assert set(scores) == {0.0, 1.0}
    assert [node_of(one).outcome for one in found] == scores


def test_limits_count_along_a_path_and_budgets_what_was_played(config: Make) -> None:
    made = varied(config, limits={"calls": 4, "steps": 4}, budget={"steps": 7}, eval_on_submit=False)
    result = collect(made)
    assert result.stopped == "the budget of steps is used up"
    assert (result.finished, result.branches) == (0, 1)
    again = made.model_copy(update={"budget": made.budget.model_copy(update={"steps": 100})})
    assert collect(again).branches == 3
    found = played(made)
    assert {one.stop for one in found.values()} == {StopReason.SUBMITTED}
    status = summarize(Path(made.out))
    assert (status["steps"], status["whole_trees"], status["finished"]) == (4 + 3 * 2, 1, 1)


def test_a_branch_that_fails_too_often_is_given_up_and_the_others_go_on(config: Make) -> None:
    made = varied(config, options={"fails_in": 30}, attempts=2, branch={"at": "edit", "width": 8}, eval_on_submit=False)
    result = collect(made)
    assert (result.finished, result.gave_up) == (0, 1)
    amounts = {amount(one) for one in played(made).values()}
    assert amounts == {10, 20}
    assert {entry["kind"] for entry in read_failures(Path(made.out))} == {"ZeroDivisionError"}
    assert collect(made) == result


def node(id: str, outcome: float | None, *kinds: Decision) -> Node:
    parent, _, place = id.rpartition("/")
    branch = BranchPoint(parent=parent, step=int(place.split(".")[0])) if parent else None
    return Node(id, branch, kinds, outcome)


def test_a_decisions_value_is_the_mean_of_what_followed() -> None:
    trees = Trees(
        [
            node("t", 1.0, SEEK, SEEK, EDIT),
            node("t/1.1", 0.0, SEEK, SEEK, EDIT),
            node("t/1.2", None, SEEK, EDIT),
            node("t/2.1", 0.0, SEEK, SEEK, EDIT),
            node("t/1.1/2.1", 0.0, SEEK, SEEK, EDIT),
        ]
    )
    assert trees.value("t", 0) == (0.25, 4)
    assert trees.value("t", 1) == (0.5, 2)
    assert trees.value("t", 2) == (1.0, 1)
    assert trees.siblings("t/1.2", 1) == [("t", 1), ("t/1.1", 1), ("t/1.2", 1)]
    first, second, third = (trees.decision(*one) for one in trees.siblings("t", 1))
    assert (first.value, first.count, first.advantage, first.siblings) == (0.5, 2, 0.5, 2)
    assert (second.value, second.count, second.advantage) == (0.0, 2, -0.5)
    assert (third.value, third.count, third.advantage) == (None, 0, None)
    assert trees.decision("t", 0).advantage is None
    assert [root.id for root in trees.roots] == ["t"]
    for depth, lacking in ((1, False), (2, True)):
        wanted = BranchConfig(at="any", width=3, depth=depth, skip=1)
        assert lacks_branches(trees, trees.nodes["t"], wanted) is lacking
