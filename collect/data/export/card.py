"""The dataset card: what is in the dataset, where it comes from, and under which license."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gumshoe import __version__
from gumshoe.collect.prompts import read_template, render
from gumshoe.records import Trajectory

CARD = Path(__file__).with_name("card.jinja")
OUTCOMES = {True: "resolved", False: "not resolved", None: "not scored"}


@dataclass
class Statistics:
    """Counts of one view, gathered row by row."""

    rows: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    projects: dict[str, set[str]] = field(default_factory=dict)
    stops: Counter[str] = field(default_factory=Counter)
    policies: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    turns: Counter[int] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    characters: int = 0

    def add(self, split: str, row: Mapping[str, Any], trajectory: Trajectory) -> None:
        """Counts one row."""
        self.rows[split] += 1
        self.projects.setdefault(split, set()).add(str(row["project"]))
        self.stops[trajectory.stop.value] += 1
        self.policies[f"{trajectory.policy.kind} {trajectory.policy.model}".strip()] += 1
        messages = _messages(row, trajectory)
        self.turns[sum(message["role"] == "assistant" for message in messages)] += 1
        self.characters += sum(len(message["content"]) for message in messages)
        self.outcomes[OUTCOMES[trajectory.resolved]] += 1
        self.tools.update(call["function"]["name"] for message in messages for call in message.get("tool_calls", ()))


def _messages(row: Mapping[str, Any], trajectory: Trajectory) -> Sequence[Mapping[str, Any]]:
    """The conversation of a row: its own; its prompt and what was chosen; or, for a row of texts, the trajectory's."""
    if "messages" in row:
        return row["messages"]
    if isinstance(row["prompt"], str):
        return [message.as_openai() for message in trajectory.messages]
    return [*row["prompt"], *(row["chosen"] if "chosen" in row else row["completion"])]


def render_card(
    views: Mapping[str, Statistics],
    *,
    columns: Mapping[str, Mapping[str, str]],
    fingerprint: str,
    license: str,
    runs: Mapping[str, str],
    sandboxes: Counter[str],
) -> str:
    """The text of README.md, its YAML header included.

    Args:
        views: maps each view to its counts, in the order of the configs.
        columns: maps each view to the types of its columns, by name.
        fingerprint: part of the names of the shards.
        license: its identifier.
        runs: maps what each run is called to the identity of its config.
        sandboxes: the backends that the traces were made in.
    """
    header = {
        "license": license,
        "task_categories": ["text-generation"],
        "tags": ["gumshoe", "agent-traces", "debugging", "tool-use"],
        "configs": [_config(name, counts, fingerprint) for name, counts in views.items() if counts.rows.total()],
    }
    text = render(
        read_template(CARD),
        header=yaml.safe_dump(header, sort_keys=False),
        views=views,
        columns=columns,
        runs=runs,
        sandboxes=sandboxes,
        license=license,
        version=__version__,
        listed=_listed,
    )
    return f"{text}\n"


def _config(name: str, statistics: Statistics, fingerprint: str) -> dict[str, object]:
    splits = [split for split in ("train", "test") if statistics.rows[split]]
    return {
        "config_name": name,
        "data_files": [{"split": split, "path": f"{name}/{split}-{fingerprint}-*.parquet"} for split in splits],
    }


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"
