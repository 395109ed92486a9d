"""What `env.py` found: the goals, and the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

BARE_BESIDE = "bare test command, compared with the verdict"
QUICK = ("view", "listdir", "grep", "bash true", "pdb p")
WARM = {"eval": 0.5, "pdb restart, b, c": 0.5}
"""Tools that the test server forks, and how long they may take compared with the bare test command."""


@dataclass(frozen=True)
class Goal:
    """What is wanted of one figure."""

    name: str
    reached: float
    wanted: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure is good enough."""
        return self.reached >= self.wanted if self.at_least else self.reached <= self.wanted


def goals(backends: Mapping[str, Any]) -> list[Goal]:
    """The goals whose figures were measured."""
    found: list[Goal] = []
    for name, part in backends.items():
        median = {row: figures["median_ms"] for row, figures in part["operations"].items()}
        if "docker exec" in median:
            found += [Goal(f"docker exec / {row}", median["docker exec"] / median[row], 20, True) for row in QUICK]
        bare = median["bare test command"]
        found += [Goal(f"{row} / bare test command, {name}", median[row] / bare, most) for row, most in WARM.items()]
        variants = median["whatif, 8 variants, quick"] / median["one failing test"]
        found.append(Goal(f"quick whatif of 8 variants / one failing test, {name}", variants, 3))
        found.append(Goal(f"snapshot and restore, paused, ms, {name}", median["snapshot and restore, paused"], 30))
        found.append(Goal(f"host MB, 16 open, {name}", part["memory_mb_16_open"], 120))
    return found


def show(backends: Mapping[str, Any], console: Console) -> None:
    """The table, and the goals."""
    table = Table("operation", title="median / p95 in ms, and in brackets docker exec / median")
    for backend in backends:
        table.add_column(backend, justify="right")
    parts = list(backends.values())
    exec_ms = next((part["operations"]["docker exec"]["median_ms"] for part in parts if _has_exec(part)), None)
    for name in dict.fromkeys(name for part in parts for name in part["operations"]):
        table.add_row(name, *(_cell(part["operations"].get(name), exec_ms) for part in parts))
    for count in parts[0]["episodes_per_minute"]:
        cells = [f"{part['episodes_per_minute'][count]:.0f}" for part in parts]
        table.add_row(f"episodes a minute, {count}", *cells)
    table.add_row("host MB, 16 sandboxes open", *(f"{part['memory_mb_16_open']:.0f}" for part in parts))
    for name, part in backends.items():
        if "memory_mb_image" in part:
            table.add_row(f"MB in the sandbox of an image, {name}", f"{part['memory_mb_image']:.0f}")
    console.print(table)
    for goal in goals(backends):
        verdict = "[green]met[/]" if goal.met else "[red]missed[/]"
        sign = "at least" if goal.at_least else "at most"
        console.print(f"{verdict}  {goal.name}: {goal.reached:.3g} ({sign} {goal.wanted:g})", highlight=False)


def _has_exec(part: Mapping[str, Any]) -> bool:
    return "docker exec" in part["operations"]


def _cell(figures: Mapping[str, float] | None, exec_ms: float | None) -> str:
    if figures is None:
        return ""
    text = f"{figures['median_ms']:.2f} / {figures['p95_ms']:.2f}"
    return text if exec_ms is None else f"{text} ({exec_ms / figures['median_ms']:.3g}x)"
