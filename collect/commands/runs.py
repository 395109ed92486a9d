"""`gumshoe status` and `gumshoe probe`: how far a run has come, and whether what its reports say holds when it is run
again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.collect.config import TRUSTED_KINDS, BranchConfig
from gumshoe.collect.data.filters import succeeded
from gumshoe.collect.data.store import read_failures, read_state, read_trajectories
from gumshoe.collect.data.tree import Node, Trees, node_of
from gumshoe.collect.run.branching import lacks_branches
from gumshoe.config import RUN_CONFIG, read_yaml, validate
from gumshoe.errors import ConfigError, DatasetError, TaskError
from gumshoe.records import Usage

if TYPE_CHECKING:
    from gumshoe.env.config import SandboxConfig
    from gumshoe.records import ContextPack, Task


def configure_status(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = "examples:\n  gumshoe status runs/collect/demo\n  gumshoe status runs/collect/demo --json"
    parser.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_status(arguments: argparse.Namespace) -> int:
    """Prints the summary."""
    summary = summarize(arguments.folder)
    print(json.dumps(summary) if arguments.json else _describe(arguments.folder, summary))
    return 0


def summarize(path: Path) -> dict[str, Any]:
    """Counts of a run folder. Raises DatasetError if it is not one."""
    stops: Counter[str] = Counter()
    resolved: Counter[bool | None] = Counter()
    usage, steps, reported = Usage(), 0, 0
    nodes: list[Node] = []
    for trajectory in read_trajectories(path):
        nodes.append(node_of(trajectory))
        stops[trajectory.stop.value] += 1
        # As the rule `resolved` has it: a report is all that an agent that cannot edit is asked for.
        by_report = trajectory.resolved is None and succeeded(trajectory)
        reported += by_report
        resolved[by_report or trajectory.resolved] += 1
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
        "reported": reported,
        "not_resolved": resolved[False],
        "unknown": resolved[None],
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
    whole = sum(not lacks_branches(trees, root, config) for root in trees.roots)
    branches = sum(node.branch is not None for node in nodes)
    return {"branches": branches, "trees": len(trees.roots), "whole_trees": whole}


def _branching(path: Path) -> BranchConfig | None:
    try:
        section = read_yaml(path / RUN_CONFIG).get("branch")
        return validate(BranchConfig, section, origin="branch") if isinstance(section, dict) else None
    except ConfigError:
        return None


def _describe(path: Path, summary: dict[str, Any]) -> str:
    state = f"running (process {summary['pid']})" if summary["running"] else "not running"
    planned = summary["planned"] if summary["planned"] is not None else "?"
    by_report = f" ({summary['reported']} by a report, not verified)" if summary["reported"] else ""
    unknown = f", {summary['unknown']} unknown (neither verified nor reported)" if summary["unknown"] else ""
    lines = [
        f"{path}: {state}",
        f"  episodes   {summary['finished']} of {planned} finished, {summary['in_flight']} in flight or left open",
        *(
            [f"  trees      {summary['whole_trees']} of {summary['trees']} whole, {summary['branches']} branches"]
            if "branches" in summary
            else []
        ),
        f"  resolved   {summary['resolved']} yes{by_report}, {summary['not_resolved']} no{unknown}",
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


PROBE_EXAMPLES = """\
examples:
  gumshoe probe runs/collect/seeker                          every report of a run
  gumshoe probe runs/collect/seeker --task tasks/mine        if the tasks have moved

Each report is run in a fresh sandbox, on the code as it was when its episode began. Exit code 1 if a finding is
contradicted.
"""


def configure_probe(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    from gumshoe.protocols import SANDBOX_KINDS

    parser.epilog = PROBE_EXAMPLES
    parser.add_argument("folder", metavar="RUN", type=Path, help="run folder")
    parser.add_argument("--task", metavar="SOURCE", help="source of its tasks (default: as in its config)")
    parser.add_argument("--sandbox", choices=SANDBOX_KINDS, default="auto", help="where the tests run")
    parser.add_argument("--unsafe", action="store_true", help="let the local sandbox take a task that is not built in")
    parser.add_argument("--json", action="store_true", help="one JSON object per report instead of text")


def run_probe(arguments: argparse.Namespace) -> int:
    """Runs the probes; 1 if one is contradicted. Raises GumshoeError."""
    from gumshoe.env.config import SandboxConfig

    sandbox = SandboxConfig(kind=arguments.sandbox, unsafe=arguments.unsafe)
    contradicted = False
    trajectories = [one for one in read_trajectories(arguments.folder) if one.context_pack is not None]
    if not trajectories:
        raise DatasetError(f"{arguments.folder} holds no report")
    tasks = _tasks_of_run(arguments.folder, arguments.task, sorted({one.task.id for one in trajectories}))
    for one in trajectories:
        task = tasks[one.task.id]
        if task.hash != one.task.hash:
            raise TaskError(f"{task.id} was changed since {one.id} was played")
        assert one.context_pack is not None
        checked = check_pack(one.context_pack, task, sandbox, trusted=one.policy.kind in TRUSTED_KINDS)
        _show_checks(one.id, task, checked, as_json=arguments.json)
        contradicted |= any(one.check is not None and one.check.status == "contradicted" for one in checked.findings)
    return int(contradicted)


def check_pack(pack: ContextPack, task: Task, sandbox: SandboxConfig, *, trusted: bool = False) -> ContextPack:
    """The pack with the results of its probes on the task's code as it was at the beginning.

    If the episode has reproduced an issue, its probes run that test.

    Args:
        pack: what was handed over.
        task: what it is about.
        sandbox: where the tests run.
        trusted: see `gumshoe.env.sandboxes.open.open_sandbox`.

    Raises:
        ConfigError: the sandbox does not accept this task.
        SandboxError, TaskError: the sandbox broke, or the task is gone.
    """
    from gumshoe.env.debug_env import DebugEnv
    from gumshoe.records import ToolCall
    from gumshoe.tools.evidence.checks import check_findings

    env = DebugEnv(task, tools=("probe", "reproduce"), sandbox=sandbox, trusted=trusted)
    try:
        env.reset()
        if pack.reproduction:
            env.step(ToolCall(id="reproduce", name="reproduce", arguments={"code": pack.reproduction}))
        return pack.model_copy(update={"findings": check_findings(env.workspace, pack.findings)})
    finally:
        env.close()


def _tasks_of_run(folder: Path, source: str | None, ids: list[str]) -> dict[str, Task]:
    """The tasks of a run, from the source in its config or from another one."""
    from gumshoe.env.tasks import load_tasks

    known: dict[str, Any] = {"source": source, "options": {}} if source else read_yaml(folder / RUN_CONFIG)["tasks"]
    loaded = load_tasks(known["source"], ids=ids, on_error=lambda error: None, **known["options"])
    return {task.id: task for task, _ in loaded}


def _show_checks(name: str, task: Task, pack: ContextPack, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"id": name, "task": task.id, "pack": pack.model_dump(mode="json")}))
        return
    from rich.padding import Padding
    from rich.text import Text

    from gumshoe.console import Console
    from gumshoe.tools.evidence.checks import describe_place

    console = Console()
    print(f"{name}   {task.id}")
    for number, finding in enumerate(pack.findings, start=1):
        check = finding.check
        assert check is not None
        nothing = "tells nothing" if check.telling is False else ""
        print(f"{number:>3}  {', '.join(filter(None, (check.status, nothing, check.note)))}")
        place = "" if finding.probe is None else f"\nprobe: {describe_place(finding.probe)}"
        # In lines of their own: columns would be too narrow for the names of tests.
        console.print(Padding(Text(f"{finding.claim}: {finding.quote}{place}"), (0, 0, 0, 5)))
