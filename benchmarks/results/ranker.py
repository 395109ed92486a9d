r"""The ranker of `suspects`: records the signals of bugs, fits the model, and compares it with simpler rankings.

    gumshoe harvest --config configs/harvest/history.yaml configs/harvest/real_train.txt --out tasks/real/train
    gumshoe harvest configs/harvest/real_train.txt --out tasks/made/train -p history=0 -p per_package=18
    python -m benchmarks.results.ranker record tasks/real/train/packages/* --out people.jsonl
    python -m benchmarks.results.ranker record tasks/made/train/packages/* --out made.jsonl
    python -m benchmarks.results.ranker fit people.jsonl --beside made.jsonl --out tools/ranking/ranker.json
    python -m benchmarks.results.ranker compare heldout.jsonl

`record` opens a sandbox for each task and goes on where it was stopped. `fit` maximizes the likelihood of the functions
that the fixes edit, with an L2 penalty, and measures the model by cross-validation over projects; bugs that operators
made count less than those of people. `compare` shows, for
bugs whose fix edits a function, how often each ranking is right by LocAgent's rule (see `eval/score/metrics.py`), and
McNemar's exact test against the first suspect: the function with the highest Ochiai, ties going to the nearest to the
frame that failed. Bugs that could not be followed count as not found.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks.taskset import load_taskset
from gumshoe.env.workspace import Workspace
from gumshoe.errors import GumshoeError, ToolFailure
from gumshoe.eval.score.measures import mcnemar
from gumshoe.eval.score.metrics import acc_at, edited_functions
from gumshoe.records import Oracle, Task
from gumshoe.storage import write_atomic
from gumshoe.tools.ranking.ranker import SIGNALS, probabilities, rank_by_signals
from gumshoe.tools.ranking.spectrum import Suspect, follow, functions_of, rank
from gumshoe.tools.runs.tracebacks import own_frames

NAMES = tuple(SIGNALS)
FOLDS = 5
BESIDE = 0.25
"""How much a bug of another kind counts: in cross-validation, more made the model worse on people's bugs."""
PENALTY = 10.0
"""Of the squared weights of the standardized signals."""

Bug = dict[str, Any]
Order = Callable[[Bug], Sequence[str]]
"""Gives the functions of a bug, likeliest first, each as `path:name`."""


def record(task: Task, oracle: Oracle) -> Bug:
    """What can be known of a bug before any experiment, and which functions its fix edits."""
    bug: Bug = {"task": task.id, "project": task.tags.get("project", ""), "edited": [], "functions": []}
    try:
        with open_sandbox(task, SandboxConfig(kind="bubblewrap"), trusted=True) as sandbox:
            workspace = Workspace(task, sandbox)
            bug["edited"] = edited_functions(oracle.gold_patch, lambda path: _text(workspace, path)) or []
            run, spectrum = follow(workspace)
            suspects = rank_by_signals(workspace, run, spectrum)
            first = rank(spectrum, functions_of(workspace, spectrum))
            frames = own_frames(frame for one in run.outcomes for frame in one.frames)
            bug["functions"] = [[_name(one), dict(one.signals)] for one in suspects]
            bug["suspects"] = _holders(suspects, [(one.path, one.span.start) for one in first])
            bug["traceback"] = _holders(suspects, [(frame.path, frame.line) for frame in frames[-1:]])
    except (GumshoeError, ToolFailure) as error:
        bug["problem"] = str(error)
    return bug


def _name(suspect: Suspect) -> str:
    return f"{suspect.path}:{suspect.span.name}"


def _holders(suspects: Sequence[Suspect], places: Sequence[tuple[str, int]]) -> list[str]:
    """The functions around some lines, each once; a function inside of another one belongs to that."""
    around = (
        _name(one)
        for path, line in places
        for one in suspects
        if one.path == path and one.span.start <= line <= one.span.end
    )
    return list(dict.fromkeys(around))


def _text(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.read_text(path)
    except ToolFailure:
        return None


def record_all(sets: Sequence[Path], out: Path, workers: int) -> None:
    """Adds the bugs of the sets that are not in the file yet."""
    known = {bug["task"] for bug in _read([out])} if out.exists() else set()
    pairs = [pair for folder in sets for pair in load_taskset(folder) if pair[0].id not in known]
    with ProcessPoolExecutor(workers) as pool, out.open("a", encoding="utf-8") as file:
        for number, bug in enumerate(pool.map(record, *zip(*pairs, strict=True)) if pairs else (), 1):
            file.write(json.dumps(bug) + "\n")
            file.flush()
            print(f"\r{number} of {len(pairs)}", end="", flush=True)
    print()


def _read(paths: Sequence[Path]) -> Iterator[Bug]:
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def fit(bugs: Sequence[Bug]) -> dict[str, dict[str, float]]:
    """The model: by signal its `mean` and `deviation` over all functions, and its `weight`."""
    known = [(_matrix(bug), _right(bug), bug.get("counts", 1.0)) for bug in bugs if _right(bug).any()]
    every = np.concatenate([matrix for matrix, *_ in known])
    mean, deviation = every.mean(0), every.std(0) + 1e-9
    scaled = [((matrix - mean) / deviation, right * counts / right.sum()) for matrix, right, counts in known]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        """The negative logarithm of the likelihood with the penalty, and its gradient."""
        total, slope = PENALTY * weights @ weights / 2, PENALTY * weights
        for matrix, right in scaled:
            utility = matrix @ weights
            probability = np.exp(utility - utility.max())
            probability /= probability.sum()
            total -= right @ np.log(probability + 1e-12)
            slope = slope + matrix.T @ (probability * right.sum() - right)
        return float(total), slope

    found = minimize(loss, np.zeros(len(NAMES)), jac=True, method="L-BFGS-B")
    columns = zip(NAMES, mean, deviation, found.x, strict=True)
    return {name: {"mean": float(m), "deviation": float(d), "weight": float(w)} for name, m, d, w in columns}


def _matrix(bug: Bug) -> np.ndarray:
    """Functions by signals."""
    return np.array([[signals[name] for name in NAMES] for _, signals in bug["functions"]]).reshape(-1, len(NAMES))


def _right(bug: Bug) -> np.ndarray:
    """Of each function, whether the fix edits it."""
    return np.array([name in bug["edited"] for name, _ in bug["functions"]], dtype=float)


def by_model(model: Mapping[str, Any] | None = None) -> Order:
    """The order of a model; None: of the one that `suspects` uses."""
    return lambda bug: _sorted(bug, probabilities([signals for _, signals in bug["functions"]], model))


def by_signal(name: str) -> Order:
    """The order of one signal alone; ties go to the first suspect."""
    sign = -1.0 if name == "distance" else 1.0
    return lambda bug: _sorted(bug, [sign * signals[name] for _, signals in bug["functions"]])


def _sorted(bug: Bug, scores: Sequence[float]) -> list[str]:
    names = [name for name, _ in bug["functions"]]
    ties = {name: number for number, name in enumerate(bug["suspects"])}
    order = sorted(range(len(names)), key=lambda one: (-scores[one], ties.get(names[one], len(ties))))
    return [names[one] for one in order]


def cross_validated(bugs: Sequence[Bug]) -> Order:
    """The order of models that were fitted without the bug's project."""
    projects = sorted({bug["project"] for bug in bugs})
    orders: dict[str, Order] = {}
    for fold in (projects[number::FOLDS] for number in range(FOLDS)):
        signals = fit([bug for bug in bugs if bug["project"] not in fold])
        order = by_model({"elsewhere": 0.0, "signals": signals})
        orders.update(dict.fromkeys(fold, order))
    return lambda bug: orders[bug["project"]](bug)


def accuracies(bugs: Sequence[Bug], order: Order) -> dict[str, list[float]]:
    """Acc@1 and Acc@5 of files and functions, of each bug."""
    found: dict[str, list[float]] = {f"{level}@{k}": [] for level in ("file", "function") for k in (1, 5)}
    for bug in bugs:
        named, gold = (order(bug) if bug["functions"] else []), bug["edited"]
        for k in (1, 5):
            found[f"function@{k}"].append(acc_at(named, gold, k))
            found[f"file@{k}"].append(acc_at(_files(named), _files(gold), k))
    return found


def _files(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name.partition(":")[0] for name in names))


def compare(bugs: Sequence[Bug], orders: Mapping[str, Order]) -> str:
    """A table of the orders, the first of which the others are tested against."""
    scored = {name: accuracies(bugs, order) for name, order in orders.items()}
    base = next(iter(scored.values()))["function@1"]
    rows = ["| | file@1 | file@5 | function@1 | function@5 | better, worse | p |", "|---|---|---|---|---|---|---|"]
    for name, found in scored.items():
        shares = " | ".join(f"{np.mean(values):.1%}" for values in found.values())
        test = mcnemar([value > 0 for value in found["function@1"]], [value > 0 for value in base])
        rows.append(f"| {name} | {shares} | {test.only_first}, {test.only_second} | {test.p_value:.2g} |")
    return "\n".join(rows)


def describe(bugs: Sequence[Bug], orders: Mapping[str, Order]) -> dict[str, Any]:
    """What the model's card says of the bugs of a kind."""
    return {
        "bugs": len(bugs),
        "projects": sorted({bug["project"] for bug in bugs}),
        "table": compare(bugs, orders).splitlines(),
    }


def share_elsewhere(bugs: Sequence[Bug], read: Mapping[str, Sequence[Bug]]) -> float:
    """The share of the bugs that are in no candidate.

    Args:
        bugs: those whose fix edits a function.
        read: all that were read, by kind.
    """
    known = sum(bug.get("counts", 1.0) for bug in bugs if _right(bug).any())
    every = sum(bug.get("counts", 1.0) for own in read.values() for bug in own)
    return round(1 - known / every, 3)


def main() -> None:
    """Records, fits or compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("sets", nargs="+", type=Path, metavar="SET")
    recording.add_argument("--workers", type=int, default=2)
    fitting = commands.add_parser("fit")
    comparing = commands.add_parser("compare")
    for one in (fitting, comparing):
        one.add_argument("bugs", nargs="+", type=Path, metavar="BUGS")
    fitting.add_argument("--beside", nargs="+", type=Path, default=[], metavar="BUGS", help="bugs of another kind")
    for one in (recording, fitting):
        one.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.command == "record":
        record_all(options.sets, options.out, options.workers)
        return
    beside = options.beside if options.command == "fit" else []
    read = {path.stem: list(_read([path])) for path in (*options.bugs, *beside)}
    for path in beside:
        read[path.stem] = [{**bug, "counts": BESIDE} for bug in read[path.stem]]
    kinds = {kind: [bug for bug in bugs if bug["edited"]] for kind, bugs in read.items()}
    bugs = [bug for kind in kinds.values() for bug in kind]
    simple: dict[str, Order] = {"first suspect": lambda bug: bug["suspects"]}
    if options.command == "compare":
        simple["last traceback line"] = lambda bug: bug["traceback"]
        simple["ranker"] = by_model()
        simple |= {f"{name} alone": by_signal(name) for name in NAMES}
        for kind, own in kinds.items():
            print(f"{len(own)} bugs of {kind}\n\n{compare(own, simple)}\n")
        return
    simple["ranker, cross-validated"] = cross_validated(bugs)
    card = {kind: describe(own, simple) for kind, own in kinds.items()}
    model = {"card": card, "elsewhere": share_elsewhere(bugs, read), "signals": fit(bugs)}
    write_atomic(options.out, json.dumps(model, indent=1) + "\n")
    print(json.dumps(card, indent=1))


if __name__ == "__main__":
    main()
