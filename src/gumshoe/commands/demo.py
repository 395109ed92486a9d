"""`gumshoe demo`: the whole loop on bundled tasks, each stage as the command that a user would type.

Each stage runs as a process of its own, so that what the demo shows is what the commands do. At the end it shows one
held-out episode of the trained model, a table, and what its figures mean.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from gumshoe.collect.commands.play import render_observation, render_patch
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.episode.conversation import describe_turn
from gumshoe.collect.packs import pack_text
from gumshoe.console import Console
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import choose
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.eval.records import Result, Summary
from gumshoe.eval.score.measures import measured
from gumshoe.eval.score.tables import named, percent, shown_groups
from gumshoe.protocols import SANDBOX_KINDS
from gumshoe.records import Step, StopReason, Task, Trajectory
from gumshoe.text import plain_text, plural

CONFIGS = "configs/demo"
"""The bundled ones, which are found from any folder."""

EXTRAS = "gumshoe-debug[train,serve]"
NEEDED = ("torch", "transformers", "trl", "peft", "accelerate", "gguf", "fastapi", "uvicorn")
"""The packages from the extras that the stages import."""

LAST_LINES = 20
"""Of the output of a stage that failed."""

EXAMPLES = """\
examples:
  gumshoe demo --model MODEL                everything, in a new folder below runs/demo/
  gumshoe demo --model MODEL --short        fewer tasks and training steps, as a quick check
  gumshoe demo --model MODEL --out /tmp/try --sandbox bubblewrap

MODEL is a small pretrained model: a .gguf file, a folder, or the ID of a hub model that is in the cache. `make demo`
downloads SmolLM2-135M-Instruct and uses it.
"""


END_S = 5.0
"""How long a stage may take to end by itself after Ctrl-C."""


@dataclass(frozen=True)
class Stage:
    """One command of the loop: what it is for, its arguments, and its overrides in the short form."""

    title: str
    argv: tuple[str, ...]
    short: tuple[str, ...] = ()


def configure_demo(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EXAMPLES
    parser.add_argument("--model", required=True, help="model to fine-tune: a .gguf file, a folder, or a hub ID")
    parser.add_argument("--out", type=Path, help="folder to make (default: runs/demo/<date and time>)")
    parser.add_argument("--short", action="store_true", help="fewer tasks and fewer training steps")
    parser.add_argument(
        "--sandbox",
        default="auto",
        choices=SANDBOX_KINDS,
        help="where programs run; auto: the first of Docker, Podman and bubblewrap that works; local: a plain copy "
        "without isolation, also for the calls of the trained model (sandbox.unsafe=true)",
    )


def run_demo(arguments: argparse.Namespace) -> int:
    """Runs all stages, and shows what came of them; the first that fails ends the demo with its exit code."""
    _check_packages()
    out: Path = arguments.out or Path("runs") / "demo" / datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    if out.exists() and any(out.iterdir()):
        raise ConfigError(f"{out} is not empty: give --out a new folder")
    if arguments.sandbox == "auto":
        # Raises ConfigError if nothing here isolates what the trained model does.
        choose(None, SandboxConfig(), trusted=False)
    _check_model(arguments.model)
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    console = Console(highlight=False)
    planned = stages(out, arguments.sandbox, arguments.model)
    for number, stage in enumerate(planned, start=1):
        run_stage(f"{number}/{len(planned)}", stage, console, out / "log.txt", short=arguments.short)
    show_outcome(out, console, short=arguments.short)
    print(f"\nThe whole loop took {_clock(time.monotonic() - began)}. All of it is in {out}; look at the episodes in")
    print(out.resolve() / "eval" / "view" / "index.html")
    return 0


def stages(out: Path, sandbox: str, model: str) -> list[Stage]:
    """The commands of the loop, in order."""
    accepted = ("-p", "sandbox.unsafe=true") if sandbox == "local" else ()
    box = ("-p", f"sandbox.kind={sandbox}", *accepted)
    return [
        Stage(
            "make bugs with known answers",
            ("synth", f"{CONFIGS}/synth.yaml", "-p", f"out={out}/tasks", *box),
            ("-p", "per_project=2"),
        ),
        Stage(
            "collect traces of a policy that debugs without knowing the answer",
            ("collect", f"{CONFIGS}/collect.yaml", "-p", f"tasks.source={out}/tasks", "-p", f"out={out}/traces", *box),
            ("-p", "tasks.limit=6"),
        ),
        Stage(
            "write the dataset",
            ("export", f"{out}/traces", "--out", f"{out}/dataset", "--view", "seeker", "--test-share", "0"),
        ),
        Stage(
            "fine-tune a small pretrained model",
            (
                *("train", f"{CONFIGS}/train.yaml", "-p", f"dataset={out}/dataset", "-p", f"out={out}/train"),
                *("-p", f"model={model}"),
            ),
            ("-p", "max_steps=1", "-p", "max_length=2048", "-p", "too_long=windows"),
        ),
        Stage(
            "serve it, and let it debug what it has not seen",
            (
                *("eval", f"{CONFIGS}/eval.yaml", "-p", f"tasks.source={out}/tasks", "-p", f"out={out}/eval"),
                *("-p", f"vars.train={out}/train", *box),
            ),
            ("-p", "tasks.limit=2", "-p", "limits.steps=2", "-p", "sampling.max_tokens=64"),
        ),
    ]


def _check_packages() -> None:
    """Raises ConfigError where the packages of a later stage are missing."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"the demo trains and serves a model: pip install '{EXTRAS}' (missing: {', '.join(missing)})")


def _check_model(model: str) -> None:
    """Raises ConfigError for a model that is neither a file or folder nor in the Hugging Face cache."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = Path(model).expanduser().exists() or isinstance(try_to_load_from_cache(model, "config.json"), str)
    except HFValidationError:
        found = False
    if not found:
        raise ConfigError(f"--model {model}: there is no such file or folder, and no such model in the cache")


def run_stage(number: str, stage: Stage, console: Console, log: Path, *, short: bool) -> None:
    """Runs the stage with a number such as `2/5`; nothing in it asks the Hugging Face hub.

    How it gets on is shown, on a terminal in one line, and its last line; what else it tells goes to the log alone.
    Raises StageFailed if it ended with an exit code other than 0.
    """
    words = ["gumshoe", *stage.argv, *(stage.short if short else ())]
    console.print(f"\n[{number}] {stage.title}\n$ {shlex.join(words)}", soft_wrap=True, markup=False)
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
    began, newest = time.monotonic(), "starting"

    def line() -> Text:
        return Text(f"      {_clock(time.monotonic() - began)}  {newest}", overflow="ellipsis", no_wrap=True)

    with log.open("a+", encoding="utf-8", errors="replace") as record:
        start = record.tell()
        with (
            subprocess.Popen(
                [sys.executable, "-m", *words],
                env={**os.environ, **offline},
                stdout=record,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            ) as process,
            Live(console=console, get_renderable=line, auto_refresh=console.is_terminal, transient=True),
        ):
            assert process.stderr is not None
            try:
                for output in process.stderr:
                    record.write(output)
                    record.flush()
                    newest = plain_text(output).strip() or newest
                    if not console.is_terminal:
                        console.print(Text(plain_text(output.rstrip("\n"))), soft_wrap=True)
            except KeyboardInterrupt:
                _end(process)
                raise
        record.seek(start)
        told = [text for text in plain_text(record.read()).splitlines() if text.strip()]
    if process.returncode:
        console.print(Text("\n".join(told[-LAST_LINES:])))
        raise StageFailed(f"stage {number} ({stage.argv[0]}) failed: see the output above", process.returncode)
    newest = told[-1].strip() if told else newest
    console.print(line(), soft_wrap=True)


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a stage, unless Ctrl-C in a terminal has reached it, too."""
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.terminate()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class StageFailed(GumshoeError):
    """A stage of the demo ended with an error; its exit code is passed on."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


TRAINED, FIRST_SUSPECT = "trained", "suspect"
"""Arms of `configs/demo/eval.yaml`."""
SHARES = {
    "valid_calls": "turns with a valid call",
    "debugged": "episodes with the debugger",
    "function_acc@1": "names the right function first",
    "line_recall": "lines of the fix in the report",
}
CONFIRMED = "facts that a new run confirms"
LIMIT = f"limits.wall_s in {CONFIGS}/eval.yaml"
PROBLEM_LINES, PATCH_LINES = 5, 12
MEANING = (
    "In minutes, a model with 135M parameters learns to use the tools and to report the place that they name, not to "
    "judge; with so few bugs, each figure may be off by 20 points or more."
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
    late = sum(result.stop is StopReason.WALL_LIMIT for result in results)
    if late:
        console.print(f"{late} of the model's {plural(len(results), 'episode')} ran out of time ({LIMIT}).")
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
        *chain.from_iterable(_step_lines(step, facts) for step in episode.steps),
        Text("It reported", style="bold"),
        Text(report),
        Text("The fix", style="bold"),
        render_patch("\n".join(fix[:PATCH_LINES])),
    )


def _step_lines(step: Step, facts: Iterable[str]) -> Iterable[Text]:
    """A turn, and three lines of what came back: the first two, and one that the report cites, or the last."""
    yield Text(f"{step.index + 1}. {describe_turn(step.completion)}", style="bold", overflow="ellipsis", no_wrap=True)
    for observation in step.observations:
        lines = [line for line in render_observation(observation).split("\n") if line.plain.strip()]
        cited = [line for line in lines[2:] if line.plain.strip() in facts]
        for line in (*lines[:2], *(cited or lines[2:])[-1:]):
            yield Text("   ", overflow="ellipsis", no_wrap=True).append_text(line)


def outcome_table(summary: Summary, episodes: Mapping[str, Iterable[Trajectory]]) -> Table:
    """The trained model, with its episodes, beside the first suspect, by group of tasks."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    arms = {arm.name: arm for arm in summary.arms}
    table.add_column("held out", no_wrap=True)
    for group in episodes:
        table.add_column(
            f"model on\n{named(group).removeprefix('held-out ')} ({summary.tasks[group]})", justify="right"
        )
        table.add_column("first\nsuspect", justify="right", style="dim")
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
