"""Whether rows whose images are on this machine work: proofs, both graders, and all tools of a session.

    python -m benchmarks.claims.swebench_images rows.jsonl --repositories mirrors [--only ID ...] [--out DIR]

For each row: `tasks check` in both regimes; our grader and the official harness on the gold patch, no patch, a broken
patch and a part of the gold patch, with the tests that fail under each; and a session in which each tool is called on
the code that the gold patch changes. Exit code 1: something is wrong.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.diff import apply_patch, gold_lines, make_patch, parse_patch
from gumshoe.env.git import Repositories
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.rows import read_rows
from gumshoe.env.verifier import grade_all
from gumshoe.env.verifier.check import check_task
from gumshoe.errors import GumshoeError
from gumshoe.eval.records import Prediction
from gumshoe.eval.swebench import run_harness
from gumshoe.records import Observation, Oracle, Task, ToolCall

DOCKER = SandboxConfig(kind="docker", pull="never")
MODEL = "patches"
TOOLS = ("listdir", "view", "grep", "eval", "suspects", "trace", "whatif", "pdb", "bash", "rewrite", "submit")


def main() -> int:
    """Tries each row and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, metavar="ROWS", help="a .jsonl, .json or .parquet file")
    parser.add_argument("--repositories", type=Path, required=True, help="folder of bare git repositories")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="only these rows")
    parser.add_argument("--parts", nargs="+", default=["check", "graders", "tools"], metavar="PART", help="what to try")
    parser.add_argument("--out", type=Path, default=Path("runs/images"), help="where the harness writes (runs/images)")
    options = parser.parse_args()
    rows = {row["instance_id"]: row for row in read_rows(options.rows)}
    debug = dict(_by_id(load_tasks("swebench", path=options.rows, regime="debug")))
    table = Table("row", *options.parts, "seconds")
    wrong = 0
    for task, oracle in load_tasks("swebench", path=options.rows, regime="issue"):
        if options.only and task.id not in options.only:
            continue
        started, cells = time.monotonic(), []
        for part in options.parts:
            try:
                if part == "check":
                    faults = [*check(task, oracle), *check(*debug[task.id])]
                elif part == "graders":
                    faults = graders(rows[task.id], task, oracle, Repositories(options.repositories), options.out)
                else:
                    faults = tools(*debug[task.id], Repositories(options.repositories))
            except GumshoeError as error:
                faults = [str(error)]
            wrong += len(faults)
            cells.append("; ".join(faults) or "ok")
        cells.append(f"{time.monotonic() - started:.0f}")
        table.add_row(task.id, *cells)
        print(task.id, *cells, file=sys.stderr, flush=True)
    Console().print(table)
    return 1 if wrong else 0


def _by_id(loaded: list[tuple[Task, Oracle]]) -> Iterator[tuple[str, tuple[Task, Oracle]]]:
    for task, oracle in loaded:
        yield task.id, (task, oracle)


def check(task: Task, oracle: Oracle) -> list[str]:
    """What the proof of the task finds wrong."""
    return [f"{task.regime}: {problem}" for problem in check_task(task, oracle, DOCKER).problems]


def graders(row: Mapping[str, Any], task: Task, oracle: Oracle, repositories: Repositories, out: Path) -> list[str]:
    """Where the graders differ, and what neither of them grades correctly."""
    patches = made_patches(task, oracle, repositories)
    image = task.workspace.image
    several = [{**row, "image": image, "instance_id": f"{task.id}--{kind}"} for kind in patches]
    answers = [
        Prediction(instance_id=f"{task.id}--{kind}", model_name_or_path=MODEL, model_patch=patch)
        for kind, patch in patches.items()
    ]
    report = run_harness(several, answers, out, workers=1)
    work = [(task.model_copy(update={"id": f"{task.id}--{kind}"}), oracle, patch) for kind, patch in patches.items()]
    faults: list[str] = []
    for (kind, _), ours in zip(patches.items(), grade_all(work, DOCKER), strict=True):
        name = f"{task.id}--{kind}"
        theirs = report.outcomes.get(name, "nothing")
        told = f"{kind}: ours {ours.outcome}, official {theirs}"
        print(f"  {task.id} {told} {ours.explanation}".rstrip(), file=sys.stderr, flush=True)
        expected = {"gold": "resolved", "empty": "empty", "broken": "unresolved"}.get(kind, theirs)
        if not ours.outcome == theirs == expected:
            faults.append(told)
        elif theirs in ("resolved", "unresolved") and (verdict := ours.verdict) is not None:
            found = json.loads((report.logs / MODEL / name / "report.json").read_text())[name].get("tests_status")
            if found is None:  # No test has run.
                continue
            if found["FAIL_TO_PASS"]["failure"] != list(verdict.failing_fail_to_pass):
                faults.append(f"{kind}: other tests fail of those to be repaired")
            if found["PASS_TO_PASS"]["failure"] != list(verdict.failing_pass_to_pass):
                faults.append(f"{kind}: other tests fail of those that passed")
    return faults


def made_patches(task: Task, oracle: Oracle, repositories: Repositories) -> dict[str, str]:
    """The gold patch, no patch, one that leaves invalid Python, and the first half of the gold patch's changes."""
    texts = _sources(task, oracle, repositories)
    after = {path: text or "" for path, text in apply_patch(texts, oracle.gold_patch).items()}
    path = next(path for path in texts if path.endswith(".py"))
    broken = texts[path] + "\ndef broken(:\n"
    halves = {name: (before.encode(), _half(before, after[name]).encode()) for name, before in texts.items()}
    return {
        "gold": oracle.gold_patch,
        "empty": "",
        "broken": make_patch({path: (texts[path].encode(), broken.encode())}),
        "partial": make_patch(halves),
    }


def _half(before: str, after: str) -> str:
    """`before` with the first half of the changed places changed, or with half of the lines if there is one place.

    A single line has no half: a comment is used instead.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [code for code in codes if code[0] != "equal"]
    kept = changes[: len(changes) // 2]
    result: list[str] = []
    for code in codes:
        _, a, b, c, d = code
        if code in kept or code[0] == "equal":
            result += new[c:d]
        elif len(changes) == 1:
            result += new[c : c + (d - c) // 2] or ["# Nothing was found.\n"]
            result += old[a + (b - a) // 2 : b]
        else:
            result += old[a:b]
    return "".join(result)


def _sources(task: Task, oracle: Oracle, repositories: Repositories) -> dict[str, str]:
    paths = [file.source for file in parse_patch(oracle.gold_patch) if file.source]
    return {path: text for path, text in repositories.read(task, paths).items() if text is not None}


def tools(task: Task, oracle: Oracle, repositories: Repositories) -> list[str]:
    """What goes wrong in a session that calls each tool where the gold patch changes code."""
    texts = _sources(task, oracle, repositories)
    after = apply_patch(texts, oracle.gold_patch)
    faults: list[str] = []
    env = DebugEnv(task, oracle=oracle, tools=TOOLS, sandbox=DOCKER, trusted=True)

    def call(name: str, holds: str = "", **arguments: Any) -> Observation:
        _, reward, _, _, info = env.step(ToolCall(id="1", name=name, arguments=arguments))
        found: Observation = info["observation"]
        first = " ".join(found.text.split())[:160]
        print(f"  {task.id} {name} {found.duration_s:.1f} s: {first}", file=sys.stderr, flush=True)
        if found.failure is not None or holds not in found.text or (name == "submit" and reward != 1.0):
            faults.append(f"{name}: {first}")
        return found

    try:
        env.reset(seed=0)
        call("listdir", next(iter(texts)).partition("/")[0])
        if call("eval").data["passed"]:
            faults.append("eval: no test fails")
        suspects = call("suspects", "run by")
        path, line = _place(texts, oracle) or _first_run(suspects, task, repositories)
        call("view", path=path, start=line, end=line + 1)
        call("grep", path, pattern="def ", path=path)
        call("trace", "call", function=f"{path}:{line}")
        call("whatif", "skip", variants=[{"path": path, "line": line, "do": "skip"}])
        call("pdb", f"{path}:{line}", command=f"b {path}:{line}\nc")
        call("pdb", command="locals")
        call("pdb", command="q")
        call("bash", "/testbed", command="pwd")
        for name, text in after.items():
            call("rewrite", path=name, code=text or "")
        if not call("eval", "passed").data["passed"]:
            faults.append("eval: a test fails after the repair")
        call("submit")
    finally:
        env.close()
    return faults


def _place(texts: Mapping[str, str], oracle: Oracle) -> tuple[str, int] | None:
    """The first statement of the function that the gold patch changes first; None where it changes none."""
    for path, lines in gold_lines(oracle.gold_patch).items():
        functions = _functions(texts.get(path, ""), lines)
        if functions:
            return path, _first_statement(functions[-1])
    return None


def _first_run(suspects: Observation, task: Task, repositories: Repositories) -> tuple[str, int]:
    """The first statement of the first suspect."""
    found: Any = suspects.data.get("suspects")
    if not found:
        raise GumshoeError("the gold patch changes no function, and there is no suspect")
    path, line = found[0]["path"], found[0]["start"]
    functions = _functions(repositories.read(task, [path])[path] or "", {line, line + 1})
    return path, _first_statement(functions[-1])


def _functions(text: str, lines: set[int]) -> list[ast.FunctionDef]:
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [node for node in nodes if any(node.lineno <= line <= (node.end_lineno or 0) for line in lines)]


def _first_statement(function: ast.FunctionDef) -> int:
    body = function.body
    documented = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[documented and len(body) > 1].lineno


if __name__ == "__main__":
    sys.exit(main())
