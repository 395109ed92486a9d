"""`gumshoe play`: debug a task yourself, with the tools that an agent has."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.rule import Rule
from rich.text import Text

from gumshoe.collect.commands.line_input import LineInput, PipeInput, Suggestion, TerminalInput, suggestions
from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.episode import Episode
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies.human import STOP, line_parameter, parse_command
from gumshoe.console import Console
from gumshoe.env.config import SandboxConfig
from gumshoe.env.debug_env import DebugEnv
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.load import SOURCES
from gumshoe.env.tasks.taskset import TASKS, is_taskset
from gumshoe.errors import ConfigError, TaskError, ToolFailure
from gumshoe.protocols import SANDBOX_KINDS
from gumshoe.records import Completion, Observation, StopReason, Task, ToolCall, ToolSchema
from gumshoe.text import did_you_mean, visible
from gumshoe.tools.code.source import read_source
from gumshoe.tools.toolbox import tool_names

STEPS = 1_000_000
DEFAULT_SOURCE = "casebook"

EXAMPLES = """\
examples:
  gumshoe play ledger                                a bundled task
  gumshoe play casebook:casebook/ledger              the same, in full
  gumshoe play tasks/casebook-synth:ID               a task from a set (see gumshoe tasks list)
  gumshoe play local:path/to/repository              a repository of your own
  gumshoe play ledger --sandbox docker --tools view,pdb,rewrite,eval,submit

what to type:
  view ledger/book.py 10 30       grep "def post" ledger       eval
  pdb b ledger/rates.py:27        pdb c                        pdb locals
  pdb                             enter debugger mode; Ctrl-D leaves it
  suspects                        rank functions by suspicion
  trace convert                   follow a function through failing and passing tests
  whatif [{path: ledger/book.py, line: 56, do: skip}]
  rewrite ledger/rates.py 27 28   edit these lines; Ctrl-D when done
  submit                          verify the fix and end

Nothing is saved; the patch is printed at the end. Without a terminal, commands are read from standard input.
"""


def configure_play(parser: argparse.ArgumentParser) -> None:
    """Adds the command's options."""
    parser.epilog = EXAMPLES
    parser.add_argument("task", metavar="TASK", help="id in the casebook, SOURCE:ID, or a source with one task")
    parser.add_argument("--sandbox", choices=SANDBOX_KINDS, default="auto", help="sandbox to use")
    parser.add_argument("--unsafe", action="store_true", help="let the local sandbox take a task that is not built in")
    parser.add_argument(
        "--tools", metavar="NAMES", help="comma-separated tools (default: all, including those of installed packages)"
    )


def run_play(arguments: argparse.Namespace) -> int:
    """Plays; 1 if the tests did not pass at the end of a submitted game. Raises GumshoeError."""
    wanted = tool_names() if arguments.tools is None else arguments.tools.split(",")
    names = [name.strip() for name in wanted if name.strip()]
    if not names:
        raise ConfigError("--tools names no tool")
    task = choose_task(arguments.task)
    # A person types many small commands, and stops whenever they want to.
    task = task.model_copy(update={"limits": task.limits.model_copy(update={"steps": STEPS, "wall_s": None})})
    config = SandboxConfig(kind=arguments.sandbox, unsafe=arguments.unsafe)
    env = DebugEnv(task, tools=names, sandbox=config, trusted=True)
    try:
        game = Game(env, Console(highlight=False))
        is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        game.play(TerminalInput(game.suggest) if is_terminal else PipeInput(sys.stdin))
    finally:
        env.close()
    return 1 if game.solved is False else 0


def choose_task(text: str) -> Task:
    """The task that `text` names: `SOURCE:ID`, an id from the casebook, or a source that has only one task.

    The last part of an id is enough if no other task has it. Raises TaskError if there is none, or more than one.
    """
    source, colon, name = text.rpartition(":")
    if colon and _is_source(source):
        return _only(source, name)
    if _is_source(text):
        return _only(text, None)
    if colon:
        return _only(source, name)
    try:
        return _only(DEFAULT_SOURCE, text)
    except TaskError as error:
        raise TaskError(_meant(Path(text)) or str(error)) from None


def _meant(path: Path) -> str | None:
    """What to write instead, for the path of a folder or of a task in a set."""
    for folder in path.parents:
        if is_taskset(folder):
            name = path.relative_to(folder)
            return f"{path} is not a task: for the task {name} of the set {folder}, write {folder}:{name}"
    if path.is_dir():
        return f"{path} is not a task set: it has no {TASKS}; for a repository of your own, write local:{path}"
    return None


def _is_source(text: str) -> bool:
    """Whether tasks can be loaded from it: a source that needs a path does not count without one."""
    kind, colon, path = text.partition(":")
    return text == DEFAULT_SOURCE or bool(colon and path and kind in SOURCES) or is_taskset(Path(text))


def _only(source: str, name: str | None) -> Task:
    tasks = [task for task, _ in load_tasks(source)]
    found = tasks if name is None else [task for task in tasks if task.id == name]
    found = found or [task for task in tasks if task.id.rpartition("/")[2] == name]
    if len(found) == 1:
        return found[0]
    listing = f"see `gumshoe tasks list {source}`"
    if found:
        raise TaskError(f"{source} has {len(found)} tasks: name one, such as {source}:{found[0].id} ({listing})")
    short = {task.id.rpartition("/")[2]: task.id for task in tasks}
    hint = did_you_mean(name, [*short, *short.values()])
    raise TaskError(f"{source} has no task {name!r}{hint} ({listing})")


WORDS: Mapping[str, str] = {
    "help": "the tools and these words; help TOOL says more",
    "problem": "the problem again",
    "patch": "what you have changed so far",
    "quit": "stop here",
}
KEYS = "Tab completes, the arrow keys go back, Ctrl-C stops a call, Ctrl-D leaves."


class Game:
    """Reads lines, runs them as calls, shows what comes back, until the end of the episode or of the input.

    When a tool that takes one text, such as `pdb`, is typed alone, all lines that follow go to it, until Ctrl-D or,
    for pdb, `q`. The environment is not reset yet, and closed by whoever made it.
    """

    def __init__(self, env: DebugEnv, console: Console) -> None:
        self._env = env
        # The tools are the environment's own; a person is shown them, not a prompt.
        self._episode = Episode(EpisodeSpec(env.task), make_agent(AgentConfig()), environment=env)
        self._console = console
        self._mode = ""
        self._calls = 0
        self._paths: list[str] | None = None
        self.solved: bool | None = None
        """Whether the tests passed when the person submitted; None if they did not submit."""

    def play(self, lines: LineInput) -> None:
        """Plays one episode. Raises SandboxError and TaskError."""
        self._episode.next_request()
        self._problem()
        self._say(f"Tools: {', '.join(schema.name for schema in self._schemas)}. Type help for more.", "dim")
        while self._episode.next_request() is not None:
            try:
                line = lines.line(f"({self._mode}) " if self._mode else f"[{self._calls}] > ", self._prefix)
                if line is None and not self._mode:
                    break
                if not self._take(line, lines):
                    break
            except KeyboardInterrupt:
                self._say("stopped", "yellow")
        self._ending()

    def suggest(self, line: str) -> Iterator[Suggestion]:
        """What can stand at the end of a line."""
        return suggestions(line, self._schemas, WORDS, self._list_paths)

    @property
    def _schemas(self) -> tuple[ToolSchema, ...]:
        return tuple(_code_last(schema) for schema in self._env.toolbox.schemas)

    @property
    def _prefix(self) -> str:
        return f"{self._mode} " if self._mode else ""

    def _take(self, line: str | None, lines: LineInput) -> bool:
        """Does what a line says; false if the game is to end."""
        if line is None:
            self._mode = ""
        elif line.strip():
            return self._call(line.strip(), lines) if self._mode else self._word(line.strip(), lines)
        return True

    def _word(self, line: str, lines: LineInput) -> bool:
        name, _, rest = line.partition(" ")
        if line in STOP:
            return False
        if name in ("help", "tools"):
            self._help(rest.strip())
        elif name == "problem":
            self._problem()
        elif name == "patch":
            self._console.print(render_patch(self._env.patch() or "nothing is changed"), soft_wrap=True)
        elif not rest and any(tool.name == name and line_parameter(tool) for tool in self._schemas):
            self._mode = name
        else:
            return self._call(line, lines)
        return True

    def _call(self, line: str, lines: LineInput) -> bool:
        call = parse_command(self._prefix + line, f"call_{self._calls}", self._schemas)
        if call.name == "rewrite" and call.parse_error is None and "code" not in call.arguments:
            code = lines.text("  ", self._replaced(call))
            if code is None:
                return True
            call = call.model_copy(update={"arguments": {**call.arguments, "code": code}})
        self._calls += 1
        self._paths = None
        step = self._episode.accept(Completion(text="", tool_calls=(call,)))
        self._console.print(render_observation(step.observations[0]), soft_wrap=True)
        if self._episode.stop is StopReason.SUBMITTED:
            self.solved = step.reward == 1.0
        if self._mode == "pdb" and line in STOP:
            self._mode = ""
        return True

    def _replaced(self, call: ToolCall) -> str:
        """The lines that a rewrite is to replace, as the text to begin from."""
        path, start, end = (call.arguments.get(name) for name in ("path", "start", "end"))
        try:
            lines = read_source(self._env.workspace.read_text(str(path))).shown
        except ToolFailure:
            return ""
        if not isinstance(start, int):
            return "\n".join(lines)
        return "\n".join(lines[start - 1 : end if isinstance(end, int) else start])

    def _list_paths(self) -> list[str]:
        """Every visible path, folders with a slash; listed only once between two calls."""
        if self._paths is None:
            entries = self._env.workspace.list()
            self._paths = [f"{entry.path}/" if entry.kind == "dir" else entry.path for entry in entries]
        return self._paths

    def _help(self, name: str) -> None:
        tools = [tool for tool in self._schemas if name in ("", tool.name)]
        for tool in tools:
            properties = tool.parameters.get("properties")
            arguments: Mapping[str, object] = properties if isinstance(properties, dict) else {}
            self._console.print(Text(f"{tool.name} {' '.join(arguments)}".strip(), style="bold"))
            self._say(f"    {tool.description}")
            for argument, schema in arguments.items() if name else ():
                meaning = schema.get("description", "") if isinstance(schema, dict) else ""
                self._say(f"    {argument}: {meaning}")
        if not tools:
            self._say(f"no tool {name}", "yellow")
        if not name:
            for word, meaning in WORDS.items():
                self._console.print(Text.assemble((word, "bold"), f"    {meaning}"))
            self._say("pdb or bash alone: every line that follows goes there, until Ctrl-D")
            self._say("rewrite PATH START END: edit these lines, Ctrl-D when they are right")
            self._say(KEYS, "dim")

    def _problem(self) -> None:
        self._console.print(Rule(self._env.task.id, align="left"))
        self._say(self._env.task.problem_statement.rstrip())

    def _ending(self) -> None:
        ended = "reported" if self._episode.stop is StopReason.REPORTED else "not submitted"
        verdict = {None: ended, True: "solved: the tests pass", False: "not solved: the tests do not pass"}
        style = {None: "yellow", True: "bold green", False: "bold red"}[self.solved]
        self._console.print(Rule(align="left"))
        self._say(f"{verdict[self.solved]} ({self._calls} calls)", style)
        patch = self._env.patch()
        self._console.print(render_patch(patch) if patch else Text("nothing was changed"), soft_wrap=True)

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def _code_last(schema: ToolSchema) -> ToolSchema:
    """The schema with the long argument `code` after the others, for people who type arguments without names."""
    properties = schema.parameters.get("properties")
    if not isinstance(properties, dict) or "code" not in properties:
        return schema
    ordered = {**{name: part for name, part in properties.items() if name != "code"}, "code": properties["code"]}
    return schema.model_copy(update={"parameters": {**schema.parameters, "properties": ordered}})


_OBSERVED = [
    (re.compile(r"^(FAILED|ERROR|CRASHED|TIMED OUT)\b.*"), "red"),
    (re.compile(r"^E .*|\b\w*(Error|Exception)\b: .*"), "red"),
    (re.compile(r"\b\d+ (failed|errors?)\b"), "bold red"),
    (re.compile(r"\b\d+ passed\b"), "bold green"),
    (re.compile(r"^(-> |> ).*"), "bold"),
    (re.compile(r"^(stopped|breakpoint)\b.*", re.IGNORECASE), "cyan"),
    (re.compile(r"^\*.*"), "yellow"),
    (re.compile(r"^\[\.\.\. .* \.\.\.\]$"), "dim"),
]
_CHANGED = [
    (re.compile(r"^(diff --git|index|---|\+\+\+|new file|deleted file) ?.*"), "bold"),
    (re.compile(r"^@@.*"), "cyan"),
    (re.compile(r"^\+.*"), "green"),
    (re.compile(r"^-.*"), "red"),
]


def render_observation(observation: Observation) -> Text:
    """An observation as a person reads it."""
    if observation.failure is not None:
        return Text(visible(observation.text), style="yellow")
    return _styled(observation.text, _CHANGED if observation.tool == "rewrite" else _OBSERVED)


def render_patch(patch: str) -> Text:
    """A unified diff in color."""
    return _styled(patch.rstrip("\n"), _CHANGED)


def _styled(text: str, styles: list[tuple[re.Pattern[str], str]]) -> Text:
    lines = [Text(line) for line in visible(text).split("\n")]
    for line in lines:
        for pattern, style in styles:
            found = pattern.search(line.plain)
            if found:
                line.stylize(style, found.start(), found.end())
                break
    return Text("\n").join(lines)
