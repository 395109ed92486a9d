"""Task folders of Harbor.

The named tests decide, as in Gumshoe's verifier: in a container of their own, which holds the original repository with
the agent's changes, except those to tests and to what configures them. The rules for what counts as test configuration
are simpler there: `pyproject.toml` and `setup.cfg` are the original ones unless the answer changes them, and new
runners are recognized by their names.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from gumshoe.env.diff import apply_patch, parse_patch
from gumshoe.env.export.context import context_refusal, hidden_tests, named, write_context
from gumshoe.env.ignore import Patterns
from gumshoe.env.sandboxes.support import support_modules
from gumshoe.env.verifier.harness_files import SHADOWED, is_runner, named_test_files
from gumshoe.env.verifier.launching import launch
from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task

__all__ = ["harbor_refusal", "write_harbor_task"]

SCHEMA = "1.4"
BUILD_S, GRACE_S = 1800.0, 120.0
AGENT_S = 3600.0
READONLY_FILE = ".debugreadonly"
SCRIPT = "verify.py"
TEST = f"""\
#!/bin/bash
exec python3 "$(dirname "$0")/{SCRIPT}"
"""
SOLVE = """\
#!/bin/bash
# The gold patch: files are written whole, so that no program for patches is needed.
set -e
cd {workdir}
exec python3 "$(dirname "$0")/solve.py"
"""
SOLVE_PROGRAM = """\
import json, os

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "solution.json"), encoding="utf-8") as stream:
    files = json.load(stream)
for path, text in files.items():
    if text is None:
        os.unlink(path)
    else:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as stream:
            stream.write(text)
"""
INSTRUCTION = """\
{problem}

The repository is in `{workdir}`. Repair its code; `{command}` runs its tests. Tests and what configures them are put
back before the repair is judged.
"""


def harbor_refusal(task: Task, oracle: Oracle) -> str | None:
    """Why a task cannot be one of Harbor's; None where it can."""
    if not (oracle.fail_to_pass or oracle.pass_to_pass):
        return "its answer names no tests, and Harbor's verifier needs them"
    return context_refusal(task)


def write_harbor_task(task: Task, oracle: Oracle, out: Path, base: str | None) -> None:
    """Writes one task's folder below `out`. Raises TaskError."""
    folder = out / named(task.id)
    if folder.exists():
        raise TaskError(f"task {task.id}: another task has the name {folder.name}, too")
    write_context(task, folder / "environment", base)
    _write(folder / "instruction.md", _instruction(task))
    _write(folder / "task.toml", _config(task))
    tests = folder / "tests"
    _write(tests / "test.sh", TEST)
    _write(tests / "task.json", json.dumps(_verdict_rules(task, oracle, folder / "environment" / "repo"), indent=1))
    inside = Path(__file__).parent.parent / "inside" / "harbor_verify.py"
    _write(tests / SCRIPT, inside.read_text(encoding="utf-8"))
    for name, text in support_modules().items():
        _write(tests / name, text)
    if oracle.gold_patch.strip():
        _write(folder / "solution" / "solve.sh", SOLVE.format(workdir=shlex.quote(task.workspace.workdir)))
        _write(folder / "solution" / "solve.py", SOLVE_PROGRAM)
        _write(folder / "solution" / "solution.json", json.dumps(_solution(oracle, folder), indent=1))


def _instruction(task: Task) -> str:
    return INSTRUCTION.format(
        problem=task.problem_statement.strip(), workdir=task.workspace.workdir, command=shlex.join(task.entrypoint)
    )


def _config(task: Task) -> str:
    """task.toml. JSON strings are valid TOML strings, too."""
    quoted = json.dumps
    keywords = ["debugging", task.source, *sorted({task.tags[key] for key in ("project", "split") if key in task.tags})]
    archive = f"tar -cf /logs/artifacts/workspace.tar -C {shlex.quote(task.workspace.workdir)} ."
    collect = f"mkdir -p /logs/artifacts && {archive}"
    tags = "".join(f"{quoted(key)} = {quoted(value)}\n" for key, value in sorted(task.tags.items()))
    return (
        f'schema_version = "{SCHEMA}"\n'
        f'artifacts = ["/logs/artifacts"]\n\n'
        f"[task]\nname = {quoted(f'gumshoe/{named(task.id)}')}\nkeywords = {quoted(keywords)}\n\n"
        f"[metadata]\ntask_id = {quoted(task.id)}\ntask_hash = {quoted(task.hash)}\n\n"
        f"[metadata.tags]\n{tags}\n"
        f"[agent]\ntimeout_sec = {task.limits.wall_s or AGENT_S}\n\n"
        f'[verifier]\nenvironment_mode = "separate"\nnetwork_mode = "no-network"\n'
        f"timeout_sec = {task.limits.command_timeout_s + GRACE_S}\n\n"
        f"[[verifier.collect]]\ncommand = {quoted(collect)}\n\n"
        f"[environment]\nbuild_timeout_sec = {BUILD_S}\n"
        f"workdir = {quoted(task.workspace.workdir)}\n"
    )


def _verdict_rules(task: Task, oracle: Oracle, repo: Path) -> dict[str, Any]:
    """What the verifier's script goes by."""
    started = launch(task.entrypoint, "{support}")
    ignored = repo / READONLY_FILE
    lines = ignored.read_text(encoding="utf-8", errors="replace").splitlines() if ignored.is_file() else []
    readonly = Patterns([*lines, *task.readonly])
    files = [file.relative_to(repo).as_posix() for file in sorted(repo.rglob("*")) if file.is_file()]
    gold = _paths(oracle.gold_patch)
    deciding = named_test_files(oracle)
    tests = {*deciding, *_paths(oracle.test_patch)}
    kept = tests | {path for path in files if readonly.match(path) or is_runner(path, task.entrypoint)}
    kept |= {word.removeprefix("./") for word in task.entrypoint}
    return {
        "root": task.workspace.workdir,
        "argv": list(started.argv),
        "direct": started.direct,
        "timeout_s": task.limits.command_timeout_s,
        "fail_to_pass": list(oracle.fail_to_pass),
        "pass_to_pass": list(oracle.pass_to_pass),
        "gold": sorted(gold - tests),
        "kept": sorted(kept),
        "deciding": sorted(deciding),
        "shadowed": sorted(SHADOWED),
        "tests": hidden_tests(task, oracle),
    }


def _solution(oracle: Oracle, folder: Path) -> dict[str, str | None]:
    """The files of the gold patch as it leaves them."""
    repo = folder / "environment" / "repo"
    known = {path: repo / path for path in _paths(oracle.gold_patch)}
    texts = {
        path: file.read_bytes().decode("utf-8", "surrogateescape") for path, file in known.items() if file.is_file()
    }
    return apply_patch(texts, oracle.gold_patch)


def _paths(patch: str) -> set[str]:
    return {path for file in parse_patch(patch) for path in file.paths} if patch.strip() else set()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    if path.suffix == ".sh":
        path.chmod(0o755)
