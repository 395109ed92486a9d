"""The end of the demo: one held-out episode of the trained model, a table, and what its figures mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gumshoe.collect.commands.play import patch_text, shown
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.episode.conversation import describe_turn
from gumshoe.collect.packs import pack_text
from gumshoe.console import Console
from gumshoe.env.tasks import load_tasks
from gumshoe.eval.records import Result, Summary
from gumshoe.eval.score.measures import measured
from gumshoe.eval.score.tables import named, percent, shown_groups
from gumshoe.records import Step, Task, Trajectory

__all__ = ["episode_text", "outcome_table", "show_outcome"]

TRAINED, FIRST_SUSPECT = "trained", "suspect"
"""Arms of `configs/demo/eval.yaml`."""
SHARES = {
    "valid_calls": "turns with a valid call",
    "debugged": "episodes with the debugger",
    "function_acc@1": "names the right function first",
    "line_recall": "lines of the fix in the report",
}
CONFIRMED = "facts that a new run confirms"
PROBLEM_LINES, PATCH_LINES = 5, 12
MEANING = (
    "With so few bugs, each figure may be off by 20 points or more. In minutes, a model with 135M parameters learns "
    "a routine, not judgement: it reports the place that the tools name. The last row says how often its facts hold."
)
MEANING_SHORT = "After one training step, the model has learned nothing yet: this shows only that every stage works."


def show_outcome(out: Path, console: Console, *, short: bool = False) -> None:
    """Prints what came of the demo in the folder `out`; `short` says that it was the short form."""
    evaluation = out / "eval"
    summary = Summary.model_validate_json((evaluation / "summary.json").read_text(encoding="utf-8"))
    lines = (evaluation / "results.jsonl").read_text(encoding="utf-8").splitlines()
    results = [result for result in map(Result.model_validate_json, lines) if result.arm == TRAINED]
    episodes = {episode.id: episode for episode in read_trajectories(evaluation / "arms" / TRAINED)}
    by_split = {
        group: [episodes[result.trajectory] for result in results if result.split == group]
        for group in shown_groups(summary)
    }
    chosen = max(results, key=_instructive)
    task, oracle = next(pair for pair in load_tasks(str(out / "tasks")) if pair[0].id == chosen.task_id)
    console.print(Rule(Text(f"one episode: {named(chosen.split)}, {task.id}")))
    console.print(episode_text(episodes[chosen.trajectory], task, oracle.gold_patch if oracle else ""))
    console.print(outcome_table(summary, by_split))
    console.print(Text(MEANING_SHORT if short else MEANING))


def _instructive(result: Result) -> tuple[bool, bool, bool]:
    """Prefers the right function, then a cited fact that tells failing from passing tests, then an unseen project."""
    scores = result.scores
    return scores.get("function_acc@1") == 1.0, scores.get("grounding") == 1.0, result.split == "heldout_projects"


def episode_text(episode: Trajectory, task: Task, gold_patch: str) -> Group:
    """An episode in a screenful: what failed, what was looked at and seen, what was reported, what the fix was."""
    facts = [] if episode.context_pack is None else [finding.quote for finding in episode.context_pack.findings]
    problem = [line for line in task.problem_statement.splitlines() if line.strip()][:PROBLEM_LINES]
    fix = [line for line in gold_patch.splitlines() if not line.startswith(("diff ", "index ", "--- "))]
    report = "nothing" if episode.context_pack is None else pack_text(episode.context_pack, handed_over=False)
    return Group(
        *(Text(line, overflow="ellipsis", no_wrap=True) for line in problem),
        *chain.from_iterable(_step(step, facts) for step in episode.steps),
        Text("It reported", style="bold"),
        Text(report),
        Text("The fix", style="bold"),
        patch_text("\n".join(fix[:PATCH_LINES])),
    )


def _step(step: Step, facts: Iterable[str]) -> Iterable[Text]:
    """A turn, and three lines of what came back: the first two, and one that the report cites, or the last."""
    yield Text(f"{step.index + 1}. {describe_turn(step.completion)}", style="bold", overflow="ellipsis", no_wrap=True)
    for observation in step.observations:
        lines = [line for line in shown(observation).split("\n") if line.plain.strip()]
        cited = [line for line in lines[2:] if line.plain.strip() in facts]
        for line in (*lines[:2], *(cited or lines[2:])[-1:]):
            yield Text("   ", overflow="ellipsis", no_wrap=True).append_text(line)


def outcome_table(summary: Summary, episodes: Mapping[str, Iterable[Trajectory]]) -> Table:
    """The trained model beside the first suspect, by group of tasks.

    Args:
        summary: the evaluation.
        episodes: those of the trained model, by group.
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    arms = {arm.name: arm for arm in summary.arms}
    table.add_column("held out, beside first suspect")
    for group in episodes:
        table.add_column(f"{named(group).removeprefix('held-out ')} ({summary.tasks[group]})", justify="right")
        table.add_column("suspect", justify="right", style="dim")
    for name, title in SHARES.items():
        cells = [
            percent(measured(arms[arm], group, name).value) for group in episodes for arm in (TRAINED, FIRST_SUSPECT)
        ]
        table.add_row(title, *cells)
    shares = [percent(_confirmed(of_group)) for of_group in episodes.values()]
    table.add_row(CONFIRMED, *chain.from_iterable((share, "") for share in shares))
    return table


def _confirmed(episodes: Iterable[Trajectory]) -> float | None:
    """The share of all findings whose probe a new run confirmed; None without findings."""
    findings = [one for episode in episodes if episode.context_pack for one in episode.context_pack.findings]
    confirmed = [one for one in findings if one.check is not None and one.check.status == "confirmed"]
    return len(confirmed) / len(findings) if findings else None
