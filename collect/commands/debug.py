"""`gumshoe init` and `gumshoe debug`: name the models that can be asked, and have one debug a repository on disk."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gumshoe.collect.commands.arguments import add_repository_arguments, policy_of, repository_options
from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import ONLY_LOOKING_KINDS, CollectConfig
from gumshoe.collect.data.store import read_failures, read_trajectories
from gumshoe.collect.episode.episode import Episode
from gumshoe.collect.episode.tool_output import tool_outputs
from gumshoe.collect.packs import headline, pack_text
from gumshoe.collect.policies.investigator.policy import pack_so_far
from gumshoe.collect.policies.llm import llm_path, with_llm, write_template
from gumshoe.config import apply_overrides, validate
from gumshoe.env.bugs.packages.requirements import MODULE, missing_packages
from gumshoe.env.diff import apply_to_folder
from gumshoe.env.sandboxes.open import open_sandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.env.workspace import Workspace
from gumshoe.errors import ConfigError, PolicyError
from gumshoe.records import ContextPack, Decision, TestRun, Trajectory
from gumshoe.standard_streams import print_text
from gumshoe.text import plural
from gumshoe.tools.runs.commands import is_pytest
from gumshoe.tools.runs.tracebacks import telling_line

INIT_EXAMPLES = """\
examples:
  gumshoe init
  gumshoe init --path ./llm.yaml && export GUMSHOE_LLM_CONFIG=./llm.yaml
"""


def configure_init(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = INIT_EXAMPLES
    parser.add_argument("--path", type=Path, help="file to create (default: in the user's config folder)")


def run_init(arguments: argparse.Namespace) -> int:
    """Writes the file and says where."""
    path = arguments.path or llm_path()
    write_template(path)
    print(f"{path}: add your models there; only you can read the file")
    return 0


SLOW_S = 10.0
"""After so long, the first run of the tests says that it is still going on."""
CANNOT_START, WRONG_USAGE, NO_TESTS = (126, 127), 4, 5
"""How shells exit if they cannot start a command, pytest if it is called in a wrong way, and if it finds no tests."""
NOT_FOUND = re.compile(r"^\S+: (?:0: cannot open|can't open file|No module named) ", re.MULTILINE)
"""What Python and shells say of a program that they cannot find."""
ERROR = re.compile(r"\berror\b", re.IGNORECASE)
MOST_LINES = 5
"""Lines of a command's output that a refusal shows."""
SYNTAX_ERROR = re.compile(
    r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)\n(?:.*\n){0,3}?.*?\b(?P<error>(?:Syntax|Indentation|Tab)Error: .*)'
)
"""How Python and pytest print one: the exception follows the line of code and the mark below it."""

DEBUG_EXAMPLES = """\
examples:
  gumshoe debug . --entrypoint "pytest tests" --model gpt                   an entry of llm.yaml (see gumshoe init)
  gumshoe debug . --model my-model --endpoint http://127.0.0.1:8000/v1      a server of your own
  gumshoe debug . --model human                                             you are the agent
  gumshoe debug ~/shop --model gpt --apply                                  and apply the patch
  gumshoe debug . -p policy.kind=investigator                               no model: a report on the likely cause

The agent works on a copy in a sandbox. The patch, or the report of an agent that only looks for the cause, goes to
standard output, everything else to standard error. Your files change only with --apply. Exit code 1: the tests still
fail; the patch is still printed. Exit code 130: stopped by Ctrl-C; what points to the cause so far is printed.
"""


def configure_debug(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = DEBUG_EXAMPLES
    add_repository_arguments(parser, entrypoint="command that fails")
    parser.add_argument("--problem", default="", metavar="TEXT", help="description of the problem for the agent")
    parser.add_argument("--model", metavar="NAME", help="entry of llm.yaml, a model of the endpoint, or human")
    parser.add_argument("--endpoint", metavar="URL", help="OpenAI-compatible server")
    parser.add_argument(
        "-p",
        "--param",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="setting of the run; `gumshoe config collect` lists them",
    )
    parser.add_argument("--step", action="store_true", help="show each turn and ask before it runs")
    parser.add_argument("--apply", action="store_true", help="apply the patch to the files in PATH")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder for the trace; resumed if it exists")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="log on the terminal; -vv logs more")


def run_debug(arguments: argparse.Namespace) -> int:
    """Runs the agent and prints its patch or report; 0 if the tests pass or it reported. Raises GumshoeError."""
    if arguments.out is not None:
        if arguments.out.resolve().is_relative_to(arguments.path.resolve()):
            raise ConfigError(
                f"--out {arguments.out} is in {arguments.path}, whose files stay as they are: move it out"
            )
        return _debug(arguments, arguments.out)
    with tempfile.TemporaryDirectory(prefix="gumshoe-debug-") as folder:
        return _debug(arguments, Path(folder) / "run")


def _debug(arguments: argparse.Namespace, out: Path) -> int:
    config = _config(arguments, out)
    if not out.exists():
        passing = _passing_tests(config)
        if passing is not None:
            print(f"the tests already pass{passing}: nothing to debug", file=sys.stderr)
            return 0
    stopped: list[Episode] = []
    result = collect(config, verbose=arguments.verbose, step=arguments.step, on_stopped=stopped.append)
    if result.stopped == "interrupted":
        pack = _found_so_far(stopped[0]) if stopped else None
        if pack is not None:
            _print_report(pack)
        print("stopped" if arguments.out is None else "stopped; run the same command again to resume", file=sys.stderr)
        return 130
    trajectory = next(iter(read_trajectories(out)), None)
    if trajectory is None:
        messages = [str(failure.get("message")) for failure in read_failures(out)]
        raise PolicyError(messages[-1] if messages else "the agent did not come to an end")
    return _show(trajectory, arguments)


def _passing_tests(config: CollectConfig) -> str | None:
    """How many tests pass, if all do; None if some fail, so that a model has something to do.

    Raises ConfigError if the tests take longer than one command may: the limit, not the code, would be debugged.
    Neither is there anything to debug where the command does not even start a test.
    """
    options: dict[str, Any] = dict(config.tasks.options)
    ((task, _),) = load_tasks(config.tasks.source, **options)
    limit = config.limits.over(task.limits).command_timeout_s
    # Only the task's own tests run here, whoever debugs it later.
    with open_sandbox(task, config.sandbox, trusted=True) as sandbox, _said_if_slow(limit):
        run, root = Workspace(task, sandbox).run_tests(limit), sandbox.root
    if run.result.timed_out:
        running = next((f", while {one.id} was running" for one in run.outcomes if one.outcome == "timed_out"), "")
        raise ConfigError(
            f"the tests did not finish within {limit:g} s, the time limit for one command{running}: "
            "raise it with -p limits.command_timeout_s=SECONDS, or run fewer tests with --entrypoint"
        )
    if _is_wrong(task.entrypoint, run):
        lines = run.result.output.strip().splitlines()
        last = "\n".join((list(filter(ERROR.search, lines)) or lines)[-MOST_LINES:])
        lacking = ", ".join(missing_packages(run.result.output))
        raise ConfigError(
            f"`{shlex.join(task.entrypoint)}` runs no tests: correct --entrypoint"
            f"{f', or give the sandbox {lacking}' if lacking else ''}\n{last}"
        )
    if not run.passed:
        said = "\n".join([run.result.output, *(one.message for one in run.outcomes)])
        wrong = SYNTAX_ERROR.search(said)
        if wrong:
            place = f"{wrong['path'].removeprefix(f'{root}/')}:{wrong['line']}"
            print(f"{place}: {wrong['error']}: tests that need this file cannot run", file=sys.stderr)
        elif all(one.outcome in ("error", "not_run") for one in run.outcomes):
            places = [f"{one.frames[-1].path}:{one.frames[-1].line}: " for one in run.outcomes if one.frames]
            print(f"no test was run: {''.join(places[-1:])}{telling_line('', said)}", file=sys.stderr)
        found = MODULE.search(said)
        if found and "." not in found[1]:
            print(_describe_missing(found[1], Path(options["path"]), task.entrypoint), file=sys.stderr)
        return None
    count = len(run.outcomes)
    return f" ({count} test{'s' * (count != 1)} in {run.result.duration_s:.1f} s)" if count else ""


def _is_wrong(command: Sequence[str], run: TestRun) -> bool:
    """Whether it is the command that is mistaken; a conftest.py that cannot be loaded is the repository's fault."""
    code, said = run.result.exit_code, run.result.output
    by_pytest = is_pytest(command) and code in (WRONG_USAGE, NO_TESTS) and "while loading conftest" not in said
    return not (run.outcomes or run.passed) and bool(code in CANNOT_START or by_pytest or NOT_FOUND.search(said))


def _describe_missing(module: str, repository: Path, command: Sequence[str]) -> str:
    """Where a module may be that the tests do not find: that it is missing may be the bug, but seldom is."""
    source = repository / "src" / module
    if source.is_dir() or source.with_suffix(".py").is_file():
        return f'the tests do not find {module}, which is in src: --entrypoint "PYTHONPATH=src {shlex.join(command)}"'
    distribution = next(iter(missing_packages(f"No module named {module}")), module)
    return (
        f"the sandbox has no module {module}: `gumshoe harvest` builds an environment that has it (--environment), or "
        f"give this Python's: -p sandbox.kind=bubblewrap -p 'sandbox.packages=[pytest,{distribution}]'"
    )


@contextmanager
def _said_if_slow(limit: float) -> Generator[None]:
    """Says after a while that the tests are still running, and for how long they may."""
    wait = min(SLOW_S, limit / 2)
    said = (
        f"the tests are still running after {wait:g} s; they are stopped after {limit:g} s "
        "(-p limits.command_timeout_s=SECONDS; --entrypoint runs fewer of them)"
    )
    timer = threading.Timer(wait, print, args=(said,), kwargs={"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _config(arguments: argparse.Namespace, out: Path) -> CollectConfig:
    """The config of a run with one episode. Raises ConfigError."""
    options = {**repository_options(arguments), "path": str(arguments.path)}
    if arguments.problem:
        options["problem_statement"] = arguments.problem
    policy = {"kind": "openai", **policy_of(arguments)}
    data = {"out": str(out), "workers": 1, "tasks": {"source": "local", "options": options}, "policy": policy}
    data = apply_overrides(data, arguments.param)
    if data["policy"]["kind"] in ONLY_LOOKING_KINDS:
        data = {**data, "agent": {"kind": "seeker", **data.get("agent", {})}}
    if data["policy"] == {"kind": "openai"}:
        raise ConfigError(
            "no model: give --model NAME (see gumshoe init) or --model human; -p policy.kind=investigator needs none"
        )
    config = validate(CollectConfig, data, origin="-p")
    return config.model_copy(update={"policy": with_llm(config.policy)})


def _found_so_far(episode: Episode) -> ContextPack | None:
    """What points to the bug in an unfinished episode; None if nothing does, or the code has been edited since."""
    edited = any(step.decision is Decision.EDIT for step in episode.steps)
    return None if edited else pack_so_far(tool_outputs(episode.messages))


def _print_report(pack: ContextPack) -> None:
    print(f"{headline(pack)}\n\n{pack_text(pack, handed_over=False)}")


def _show(trajectory: Trajectory, arguments: argparse.Namespace) -> int:
    patch = trajectory.patch or ""
    print_text(patch)
    resolved = trajectory.resolved is True
    unknown = "it is not known whether the tests pass" if patch else "neither a patch nor a report"
    verdict = {True: "the tests pass", False: "the tests do not pass", None: unknown}[trajectory.resolved]
    steps = f"{plural(len(trajectory.steps), 'step')} ({trajectory.stop})"
    unchanged = "nothing was changed" + (": there is no patch for --apply" if arguments.apply else "")
    if trajectory.context_pack is not None and not patch:
        _print_report(trajectory.context_pack)
        print(f"a report after {steps}; {unchanged}", file=sys.stderr)
        return 0
    print(f"{verdict} after {steps}", file=sys.stderr)
    if not patch:
        last = trajectory.steps[-1].rationale if trajectory.steps else None
        print(f"{unchanged}{f'; its last words: {last}' if last else ''}", file=sys.stderr)
    elif arguments.apply:
        print(f"changed: {', '.join(apply_to_folder(arguments.path, patch))}", file=sys.stderr)
    else:
        print("files unchanged; use --apply to change them", file=sys.stderr)
    return 0 if resolved else 1
