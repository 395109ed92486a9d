"""The `gumshoe` command.

The commands are in modules by subject, in `commands` of their folder. For the command NAME, a module has
`configure_NAME(parser)` and `run_NAME(arguments) -> exit code`. It is imported when the command is called, so that
`gumshoe --help` stays fast.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gumshoe import __version__
from gumshoe.errors import ConfigError, GumshoeError
from gumshoe.standard_streams import screened_streams
from gumshoe.text import unknown_choice

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("gumshoe.commands.demo", "run the whole loop on bundled tasks: collect, train, serve, evaluate"),
    "doctor": ("gumshoe.env.commands.doctor", "show which sandboxes work here; clean up after dead runs"),
    "tasks": ("gumshoe.env.commands.tasks", "list, show and check the tasks of a source"),
    "play": ("gumshoe.collect.commands.play", "debug a task yourself, with the tools that an agent has"),
    "harvest": ("gumshoe.env.commands.bugs", "make verified tasks from Python packages"),
    "synth": ("gumshoe.env.commands.bugs", "make verified bugs from projects with passing tests"),
    "debug": ("gumshoe.collect.commands.debug", "run an agent on a repository on disk and print its patch or report"),
    "collect": ("gumshoe.collect.commands.collect", "run an agent on tasks and record its trajectories"),
    "init": ("gumshoe.collect.commands.debug", "write a commented llm.yaml for your models and keys"),
    "config": ("gumshoe.commands.config", "list every key of a config, with its type, default and meaning"),
    "completion": ("gumshoe.cli", "print a shell completion script"),
    "status": ("gumshoe.collect.commands.runs", "show the progress of a run"),
    "probe": ("gumshoe.collect.commands.runs", "run the probes of stored reports again, in fresh sandboxes"),
    "filter": ("gumshoe.collect.commands.data", "keep the trajectories that pass named rules"),
    "export": ("gumshoe.collect.commands.data", "turn a run into a Hugging Face dataset"),
    "convert": ("gumshoe.collect.commands.data", "convert trajectories to ATIF, or from ATIF, SWE-agent and others"),
    "preflight": ("gumshoe.train.commands", "show which tokens of a dataset would be trained on, and check it"),
    "unpack": ("gumshoe.train.commands", "make a model folder from a .gguf file, with a template for tools"),
    "train": ("gumshoe.train.commands", "fine-tune a model on a dataset"),
    "serve": ("gumshoe.eval.commands.servers", "serve a model folder behind an OpenAI-compatible endpoint"),
    "eval": ("gumshoe.eval.commands.eval", "run policies on held-out tasks, score them, write a report"),
    "grade": (
        "gumshoe.eval.commands.grade",
        "grade patches with the official SWE-bench harness or Gumshoe's own grader",
    ),
    "compare": ("gumshoe.eval.commands.eval", "show the paired differences between two evaluations"),
    "mcp": ("gumshoe.eval.commands.servers", "serve the sandboxed tools on a repository to coding agents (MCP)"),
    "openenv": ("gumshoe.eval.commands.servers", "serve the environment over OpenEnv's protocol, for training"),
    "view": ("gumshoe.eval.commands.servers", "look at traces, datasets and evaluations in a browser"),
}

EXTRAS = {
    "accelerate": "train",
    "anthropic": "anthropic",
    "mcp": "mcp",
    "openenv": "openenv",
    "peft": "train",
    "ray": "ray",
    "starlette": "view",
    "swebench": "swebench",
    "torch": "train",
    "transformers": "train",
    "trl": "train",
    "uvicorn": "view",
}

MISTAKEN_PATHS = frozenset(
    {
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG),
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL),
    }
)
"""What is wrong with a path that the user can replace by another one."""

EXAMPLES = """\
examples:
  gumshoe demo --model MODEL                          the whole loop on bundled tasks, with a small pretrained model
  gumshoe collect collect/demo -p workers=4
  gumshoe export runs/collect/demo --out datasets/demo
  gumshoe train train/smollm2
  gumshoe eval eval/heuristics

Run `gumshoe COMMAND --help` for details.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (default: the process's own) and returns its exit code.

    0 is success; 1 a failure of Gumshoe or the infrastructure, or what a command found wrong; 2 what the user can fix;
    130 Ctrl-C; 141 a reader of the output that has left.
    """
    with screened_streams():
        return _main(list(sys.argv[1:] if argv is None else argv))


def _main(arguments: list[str]) -> int:
    # The first word that is a command's name: no option before the command takes a value, which might be one, too.
    name = next((argument for argument in arguments if argument in COMMANDS), None)
    try:
        return _run(arguments, name)
    except GumshoeError as error:
        print(f"gumshoe {name}: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        print(f"gumshoe {name}: {package} is missing: pip install 'gumshoe-debug[{EXTRAS[package]}]'", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"gumshoe {name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except OSError as error:  # A full disk, a folder that may not be written: no traceback explains it.
        if error.errno is None:
            raise
        place = error.filename2 or error.filename
        is_mistake = place is not None and error.errno in MISTAKEN_PATHS
        message = f"{place}: {error.strerror}: give another path" if is_mistake else str(error)
        print(f"gumshoe {name}: {' '.join(message.split())}", file=sys.stderr)
        return 2 if is_mistake else 1


def _run(arguments: Sequence[str], name: str | None) -> int:
    parser = make_parser([name])
    options, unknown = parser.parse_known_args(arguments)
    if unknown:
        settings = "; settings are given as -p KEY=VALUE" if "param" in options else ""
        parser.prog = " ".join(filter(None, [parser.prog, name]))
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{settings}")
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return int(options.run(options))
    except ConfigError as error:
        from gumshoe.commands.config import CONFIGS, commands_of

        config = getattr(options, "config", None)
        if options.command not in CONFIGS or not isinstance(config, Path):
            raise
        others = commands_of(config)
        if options.command in others or len(others) != 1:
            raise
        raise ConfigError(f"{error} (it looks like a config of gumshoe {others.pop()})") from None


class _OneLineParser(argparse.ArgumentParser):
    """Answers a wrong command line with one line instead of the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is none of the choices, and names the one that was probably meant."""
        if action.choices is not None and value not in action.choices:
            name = "/".join(action.option_strings) or action.dest
            raise argparse.ArgumentError(None, unknown_choice(name, value, [str(choice) for choice in action.choices]))


def make_parser(chosen: Iterable[str | None]) -> argparse.ArgumentParser:
    """The parser of the whole command line. Only the modules of the chosen commands are imported."""
    wanted = set(chosen)
    parser = _OneLineParser(
        prog="gumshoe",
        description="Collect debugging traces, train an info-seeking model on them, measure how much it helps.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gumshoe {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_OneLineParser)
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=summary, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        if name in wanted:
            loaded = importlib.import_module(module)
            getattr(loaded, f"configure_{name}")(command)
            command.set_defaults(run=getattr(loaded, f"run_{name}"))
    return parser


COMPLETION_EXAMPLES = """\
examples:
  source <(gumshoe completion bash)                                       in this shell
  gumshoe completion bash > ~/.local/share/bash-completion/completions/gumshoe
  gumshoe completion zsh > ~/.zfunc/_gumshoe                              with fpath+=~/.zfunc in ~/.zshrc
"""


def configure_completion(parser: argparse.ArgumentParser) -> None:
    """Adds the argument of `gumshoe completion`."""
    import shtab

    parser.epilog = COMPLETION_EXAMPLES
    parser.add_argument("shell", choices=shtab.SUPPORTED_SHELLS, help="shell that the script is for")


def run_completion(arguments: argparse.Namespace) -> int:
    """Prints a script that completes commands, options and paths in a shell."""
    import shtab

    parser = make_parser(COMMANDS)
    _complete_paths(parser)
    print(shtab.complete(parser, arguments.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    """Completes file names for every argument that is a path."""
    import shtab

    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse has no other way to list them
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                _complete_paths(command)
        elif action.type is Path:
            setattr(action, "complete", shtab.FILE)  # noqa: B010 - an attribute that only shtab knows
