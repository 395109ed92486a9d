"""`gumshoe play`: debug a task yourself, with the tools that an agent has."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError

if TYPE_CHECKING:
    from gumshoe.collect.play.game import Game
    from gumshoe.collect.play.lines import LineInput

__all__ = ["configure_play", "run_play"]

STEPS = 1_000_000

EPILOG = """\
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
    from gumshoe.protocols import SANDBOX_KINDS

    parser.epilog = EPILOG
    parser.add_argument("task", metavar="TASK", help="id in the casebook, SOURCE:ID, or a source with one task")
    parser.add_argument("--sandbox", choices=SANDBOX_KINDS, default="auto", help="sandbox to use")
    parser.add_argument("--unsafe", action="store_true", help="let the local sandbox take a task that is not built in")
    parser.add_argument(
        "--tools", metavar="NAMES", help="comma-separated tools (default: all, including those of installed packages)"
    )


def run_play(arguments: argparse.Namespace) -> int:
    """Plays; 1 if the tests did not pass at the end of a submitted game. Raises GumshoeError."""
    from gumshoe.collect.commands.arguments import choose_task
    from gumshoe.collect.play.game import Game
    from gumshoe.console import Console
    from gumshoe.env.config import SandboxConfig
    from gumshoe.env.debug_env import DebugEnv
    from gumshoe.tools.toolbox import tool_names

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
        game.play(_line_input(game))
    finally:
        env.close()
    return 1 if game.solved is False else 0


def _line_input(game: Game) -> LineInput:
    from gumshoe.collect.play.lines import PipeInput, TerminalInput

    return TerminalInput(game.suggest) if sys.stdin.isatty() and sys.stdout.isatty() else PipeInput(sys.stdin)
