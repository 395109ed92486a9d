"""What `suspects` costs, measured against `eval` in the same session.

    python -m benchmarks.speed.suspects --source swebench path=rows.jsonl regime=debug [--only ID ...]
    python -m benchmarks.speed.suspects --source quixbugs path=QuixBugs --sandbox bubblewrap

For each task: `eval` and `suspects` once, so that the test server is running, then each `--repeats` times, alternating.
The table has the best times in seconds and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys

from rich.console import Console
from rich.table import Table

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.tasks.load import load_tasks
from gumshoe.errors import GumshoeError
from gumshoe.records import Oracle, Task, ToolCall


def main() -> int:
    """Measures each task and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", required=True, metavar="SOURCE", help="a source of tasks, such as swebench")
    parser.add_argument("options", nargs="*", metavar="KEY=VALUE", help="options of the source, such as its path")
    parser.add_argument("--sandbox", default="docker", metavar="KIND", help="kind of the sandboxes (docker)")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="only these tasks")
    parser.add_argument("--limit", type=int, default=None, metavar="N", help="only the first N tasks")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="times each is measured (3)")
    options = parser.parse_args()
    given = dict(option.partition("=")[::2] for option in options.options)
    loaded = load_tasks(options.source, ids=options.only or None, limit=options.limit, **given)
    sandbox = SandboxConfig(kind=options.sandbox, pull="never")
    table = Table("task", "eval, s", "suspects, s", "suspects / eval")
    ratios = []
    for task, oracle in loaded:
        try:
            evaluated, followed = measure(task, oracle, sandbox, options.repeats)
        except GumshoeError as error:
            table.add_row(task.id, "", "", str(error))
            continue
        ratios.append(followed / evaluated)
        table.add_row(task.id, f"{evaluated:.2f}", f"{followed:.2f}", f"{ratios[-1]:.2f}")
        print(task.id, f"{evaluated:.2f} {followed:.2f} {ratios[-1]:.2f}", file=sys.stderr, flush=True)
    Console().print(table)
    if ratios:
        print(
            f"suspects / eval: median {statistics.median(ratios):.2f}, highest {max(ratios):.2f}, {len(ratios)} tasks"
        )
    return 0


def measure(task: Task, oracle: Oracle, sandbox: SandboxConfig, repeats: int) -> tuple[float, float]:
    """Best times of `eval` and `suspects`, in seconds."""
    env = DebugEnv(task, oracle=oracle, tools=("eval", "suspects"), sandbox=sandbox, trusted=True)
    try:
        env.reset(seed=0)

        def seconds(name: str) -> float:
            observation = env.step(ToolCall(id="1", name=name, arguments={}))[4]["observation"]
            if observation.failure is not None:
                raise GumshoeError(f"{name}: {observation.text}")
            return observation.duration_s

        for name in ("eval", "suspects"):
            seconds(name)
        turns = [(seconds("eval"), seconds("suspects")) for _ in range(repeats)]
    finally:
        env.close()
    evaluated, followed = (min(each) for each in zip(*turns, strict=True))
    return evaluated, followed


if __name__ == "__main__":
    sys.exit(main())
