"""`gumshoe openenv SOURCE`: the environment over OpenEnv's protocol."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from gumshoe.config import apply_overrides, read_yaml, validate

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe openenv casebook                                   every task of a source, at http://127.0.0.1:8000
  gumshoe openenv tasks/mine -p sandbox.pool=8 -p sessions=8 -p agent.kind=debug
  gumshoe openenv casebook --host 0.0.0.0                    for other machines; the address includes a token
  openenv validate --url http://127.0.0.1:8000               OpenEnv's own check

docs/openenv.md shows how to train through it with TRL, and how to deploy it as a container.
"""
PORT = 8000


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("source", metavar="SOURCE", help="task source, such as casebook or a folder with a task set")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file: tasks, agent, sandbox, limits, weights")
    parser.add_argument(
        "-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override of the config"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: only this machine)")
    parser.add_argument("--port", type=int, default=PORT, help="port; 0 takes a free one (default: %(default)s)")
    parser.add_argument("--token", help="access token (default: random, if other hosts can connect)")


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C. Raises GumshoeError."""
    from gumshoe.env.sandboxes.open import close_pools
    from gumshoe.eval.openenv import OpenEnvConfig, make_app
    from gumshoe.eval.web import serve_programs

    data: dict[str, Any] = read_yaml(arguments.config) if arguments.config is not None else {"sandbox": {"pool": 4}}
    data = {**data, "tasks": {**data.get("tasks", {}), "source": arguments.source}}
    config = validate(OpenEnvConfig, apply_overrides(data, arguments.param), origin="gumshoe openenv")
    try:
        serve_programs(make_app(config), "OpenEnv", host=arguments.host, port=arguments.port, token=arguments.token)
    finally:
        close_pools()
    return 0
