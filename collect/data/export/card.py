"""The dataset card: what is in the dataset, where it comes from, and under which license."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from gumshoe import __version__
from gumshoe.collect.data.export.rows import COLUMNS
from gumshoe.records import Trajectory

__all__ = ["Statistics", "render_card"]

MEANINGS = {
    "messages": "the conversation in the form of chat templates and TRL; arguments of calls are objects",
    "tools": "the tools that were offered, as JSON schemas",
    "steps": "one entry a call: decision, confidence, rationale, tool, arguments, observation, reward",
    "sampled": "of turns whose server gave them: the token ids and log probabilities as they were sampled",
    "context_pack": "the report: locations, findings, hypothesis",
    "resolved": "whether the tests pass with the patch; null where that was not measured",
    "project": "the repository; splits are by project",
}
VIEW_MEANINGS = {
    "agent": "whole episodes.",
    "seeker": "information seeking up to the first edit, closed by a `report` whose findings cite what was observed.",
    "agent_decisions": "a row for each turn of an episode: `prompt` is what it was shown, `completion` the turn.",
    "seeker_decisions": "a row for each turn of `seeker`: `prompt` is what was seen before it, `completion` the turn.",
    "preferences": "two decisions tried in one place: `chosen` was worth more than `rejected`, by what followed them "
    "(`chosen_value`, `rejected_value`: the mean outcome of `..._count` episodes). The columns are those of TRL's DPO.",
    "steps_scored": "an episode with a label a step, in TRL's format for stepwise supervision: `values` is the mean "
    "outcome of the `counts` episodes that went through the step, `advantages` what that is above the other decisions "
    "tried in its place, `labels` whether it is 0.5 or more and no probe contradicts what was reported. A text begins "
    "with what came back from the step before.",
}


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
    decisions: Counter[str] = field(default_factory=Counter)
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
        self.decisions.update(_decisions(row, trajectory))
        self.outcomes[OUTCOMES[trajectory.resolved]] += 1
        self.tools.update(call["function"]["name"] for message in messages for call in message.get("tool_calls", ()))


def _messages(row: Mapping[str, Any], trajectory: Trajectory) -> Sequence[Mapping[str, Any]]:
    """The conversation of a row: its own; its prompt and what was chosen; or, for a row of texts, the trajectory's."""
    if "messages" in row:
        return row["messages"]
    if isinstance(row["prompt"], str):
        return [message.as_openai() for message in trajectory.messages]
    return [*row["prompt"], *(row["chosen"] if "chosen" in row else row["completion"])]


def _decisions(row: Mapping[str, Any], trajectory: Trajectory) -> list[str]:
    """What each turn of a row was for, by the tools it called."""
    if "steps" not in row:
        kinds = [row["decision"]] if "decision" in row else [step.decision for step in trajectory.steps]
        return [kind or "none" for kind in kinds]
    return list({entry["step"]: entry["decision"] or "none" for entry in row["steps"]}.values())


def render_card(
    views: Mapping[str, Statistics], *, fingerprint: str, license: str, runs: Mapping[str, str], sandboxes: Counter[str]
) -> str:
    """The text of README.md, its YAML header included.

    Args:
        views: maps each view to its counts, in the order of the configs.
        fingerprint: part of the names of the shards.
        license: identifier of the license, such as `mit`.
        runs: maps each run folder's name to the identity of its config.
        sandboxes: the backends that the traces were made in.
    """
    header = {
        "license": license,
        "task_categories": ["text-generation"],
        "tags": ["gumshoe", "agent-traces", "debugging", "tool-use"],
        "configs": [_config(name, counts, fingerprint) for name, counts in views.items() if counts.rows.total()],
    }
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n",
        "# Debugging traces\n",
        "Each row is an episode of an agent that debugs a Python repository in a sandbox: what it saw, what it decided "
        "and why, which tool it called, what came back. All observations are real tool output.\n",
        "".join(f"- `{name}`: {VIEW_MEANINGS[name]}\n" for name in views),
        '```python\nimport datasets\n\nrows = datasets.load_dataset(PATH, "seeker", split="train")\n```\n',
        *(_view(name, statistics) for name, statistics in views.items()),
        "## Columns\n",
        "\n".join(f"- `{name}` ({kind}){_meaning(name)}" for name, kind in COLUMNS.items()) + "\n",
        "## Where it comes from\n",
        f"Made with gumshoe {__version__}. Sandboxes: {_counts(sandboxes)}.\n",
        "| run | config |\n|---|---|\n" + "\n".join(f"| {name} | `{run[:16]}` |" for name, run in runs.items()) + "\n",
        f"License: {license}.\n",
    ]
    return "\n".join(parts)


def _config(name: str, statistics: Statistics, fingerprint: str) -> dict[str, object]:
    splits = [split for split in ("train", "test") if statistics.rows[split]]
    return {
        "config_name": name,
        "data_files": [{"split": split, "path": f"{name}/{split}-{fingerprint}-*.parquet"} for split in splits],
    }


def _view(name: str, statistics: Statistics) -> str:
    total = statistics.rows.total()
    lines = [f"## View `{name}`\n", "| split | rows | projects |", "|---|---|---|"]
    lines += [
        f"| {split} | {statistics.rows[split]} | {len(statistics.projects.get(split, ()))} |"
        for split in ("train", "test")
    ]
    lines += ["", f"- policies: {_counts(statistics.policies)}", f"- stops: {_counts(statistics.stops)}"]
    lines += [f"- calls: {_counts(statistics.tools)}"]
    if total:
        turns = sorted(statistics.turns.elements())
        lines.append(f"- turns a row: {turns[0]} to {turns[-1]}, median {turns[len(turns) // 2]}")
        lines.append(f"- characters a row, on average: {statistics.characters // total}")
        lines.append(f"- what turns are for: {_counts(statistics.decisions)}")
        lines.append(f"- outcome: {_counts(statistics.outcomes)}")
    lines.append(f"- left out: {_counts(statistics.dropped)}")
    return "\n".join(lines) + "\n"


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common()) or "none"


def _meaning(name: str) -> str:
    return f": {MEANINGS[name]}" if name in MEANINGS else ""
