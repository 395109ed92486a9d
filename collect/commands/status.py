"""`gumshoe status`: the progress of a run."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from gumshoe.collect.config import BranchConfig
from gumshoe.collect.data.store import read_failures, read_state, read_trajectories
from gumshoe.collect.data.tree import Node, Trees, node_of
from gumshoe.config import RUN_CONFIG, read_yaml, validate
from gumshoe.errors import ConfigError
from gumshoe.records import Usage

__all__ = ["configure", "run", "summarize", "unfinished_trees"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = "examples:\n  gumshoe status runs/collect/demo\n  gumshoe status runs/collect/demo --json"
    parser.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Prints the summary."""
    summary = summarize(arguments.folder)
    print(json.dumps(summary) if arguments.json else _text(arguments.folder, summary))
    return 0


def summarize(path: Path) -> dict[str, Any]:
    """Counts of a run folder. Raises DatasetError if it is not one."""
    stops: Counter[str] = Counter()
    resolved: Counter[bool | None] = Counter()
    usage, steps = Usage(), 0
    nodes: list[Node] = []
    for trajectory in read_trajectories(path):
        nodes.append(node_of(trajectory))
        stops[trajectory.stop.value] += 1
        resolved[trajectory.resolved] += 1
        usage = usage + trajectory.own_usage
        steps += len(trajectory.own_steps)
    state = read_state(path)
    failures = Counter(entry["kind"] for entry in read_failures(path))
    return {
        "running": state["running"],
        "pid": state.get("pid") if state["running"] else None,
        "planned": state.get("planned"),
        "finished": sum(node.branch is None for node in nodes),
        **_trees(nodes, _branching(path)),
        "resolved": resolved[True],
        "not_resolved": resolved[False],
        "in_flight": len(list((path / "journal").glob("*.jsonl"))),
        "stops": dict(stops.most_common()),
        "failures": dict(failures.most_common()),
        "steps": steps,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
    }


def unfinished_trees(path: Path) -> int:
    """How many trees of a run folder lack branches; 0 for a run without trees."""
    config = _branching(path)
    if config is None:
        return 0
    counts = _trees([node_of(trajectory) for trajectory in read_trajectories(path)], config)
    return counts["trees"] - counts["whole_trees"]


def _trees(nodes: list[Node], config: BranchConfig | None) -> dict[str, int]:
    """How many episodes began in the middle of another one, how many trees there are, and how many are whole."""
    if config is None:
        return {}
    trees = Trees(nodes)
    whole = sum(trees.missing(root, config) == 0 for root in trees.roots)
    branches = sum(node.branch is not None for node in nodes)
    return {"branches": branches, "trees": len(trees.roots), "whole_trees": whole}


def _branching(path: Path) -> BranchConfig | None:
    try:
        section = read_yaml(path / RUN_CONFIG).get("branch")
        return validate(BranchConfig, section, origin="branch") if isinstance(section, dict) else None
    except ConfigError:
        return None


def _text(path: Path, summary: dict[str, Any]) -> str:
    state = f"running (process {summary['pid']})" if summary["running"] else "not running"
    planned = summary["planned"] if summary["planned"] is not None else "?"
    lines = [
        f"{path}: {state}",
        f"  episodes   {summary['finished']} of {planned} finished, {summary['in_flight']} in flight or left open",
        *(
            [f"  trees      {summary['whole_trees']} of {summary['trees']} whole, {summary['branches']} branches"]
            if "branches" in summary
            else []
        ),
        f"  resolved   {summary['resolved']} yes, {summary['not_resolved']} no",
        f"  stops      {_counts(summary['stops'])}",
        f"  failures   {_counts(summary['failures'])}",
        f"  steps      {summary['steps']}",
    ]
    if summary["prompt_tokens"]:
        cached = f" ({summary['cached_tokens']} cached)" if summary["cached_tokens"] else ""
        lines.append(f"  tokens     {summary['prompt_tokens']} read{cached}, {summary['completion_tokens']} written")
    if summary["cost_usd"] is not None:
        lines.append(f"  cost       ${summary['cost_usd']:.2f}")
    return "\n".join(lines)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
