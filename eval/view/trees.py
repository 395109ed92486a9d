"""What else was tried at the steps of an episode in a tree, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gumshoe.collect.data.tree import Node, Trees, node_of
from gumshoe.records import Step, Trajectory

__all__ = ["MOST_MEMBERS", "tree_ids", "tried_beside"]

MOST_MEMBERS = 256
"""The most trajectories of a tree that are read."""

Answer = dict[str, Any]


def tree_ids(id: str, parents: Mapping[str, str]) -> list[str]:
    """The ids of the episodes in an episode's tree, its own included; only its own if it is in none.

    Args:
        id: the episode.
        parents: for each branch, the episode that it branched from.
    """
    root = id
    for _ in parents:
        root = parents.get(root, root)
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    found, open_ones = {root: None}, [root]
    while open_ones and len(found) < MOST_MEMBERS:
        new = [child for child in children.get(open_ones.pop(), ()) if child not in found]
        found |= dict.fromkeys(new)
        open_ones += new
    return list(found)[:MOST_MEMBERS]


def tried_beside(id: str, members: Iterable[Trajectory], rows: Mapping[str, Mapping[str, Any]]) -> list[Answer]:
    """All decisions that were tried at each step of an episode, by step: best first, its own included.

    Args:
        id: the episode.
        members: the trajectories of its tree.
        rows: what the list knows of them, by id.
    """
    steps: dict[str, tuple[Step, ...]] = {}
    nodes: list[Node] = []
    for trajectory in members:
        steps[trajectory.id] = trajectory.steps
        nodes.append(node_of(trajectory))
    trees = Trees(nodes)
    if id not in trees.nodes:
        return []
    places = [_owner(trees, id, step) for step in range(len(steps[id]))]
    tried = [(step, trees.siblings(owner, step)) for step, owner in enumerate(places)]
    return [
        {"step": step, "tried": _ranked(trees, siblings, mine=places[step], steps=steps, rows=rows)}
        for step, siblings in tried
        if len(siblings) > 1
    ]


def _owner(trees: Trees, id: str, step: int) -> str:
    """The trajectory of a tree that a step originally belongs to."""
    node = trees.nodes[id]
    while step < node.start and node.branch is not None and node.branch.parent in trees.nodes:
        node = trees.nodes[node.branch.parent]
    return node.id


def _ranked(
    trees: Trees,
    siblings: list[tuple[str, int]],
    *,
    mine: str,
    steps: Mapping[str, tuple[Step, ...]],
    rows: Mapping[str, Mapping[str, Any]],
) -> list[Answer]:
    found: list[Answer] = []
    for owner, index in siblings:
        worth, step = trees.decision(owner, index), steps[owner][index]
        calls = [{"name": call.name, "arguments": call.arguments} for call in step.tool_calls]
        row = rows.get(owner, {})
        found.append(
            {
                "key": row.get("key"),
                "outcome": row.get("outcome") or "",
                "mine": owner == mine,
                "decision": step.decision.value if step.decision else None,
                "calls": calls,
                "value": worth.value,
                "count": worth.count,
                "advantage": worth.advantage,
            }
        )
    return sorted(found, key=lambda one: -1.0 if one["value"] is None else one["value"], reverse=True)
