"""`gumshoe serve MODEL`: a model folder behind an OpenAI-compatible endpoint, until Ctrl-C; or a check of it."""

from __future__ import annotations

import argparse
import signal
from collections import Counter
from pathlib import Path
from types import FrameType

from gumshoe.config import apply_overrides, validate, web_address
from gumshoe.errors import ConfigError
from gumshoe.eval.config import ServeConfig

__all__ = ["configure", "run"]

EXAMPLES = """\
examples:
  gumshoe serve runs/train/smollm2/model --port 8000
  gumshoe serve MODEL --python ~/vllm/bin/python             an environment with vLLM
  gumshoe serve MODEL --backend transformers --log server.log
  gumshoe serve MODEL -p max_length=32768 -p tensor_parallel=2
  gumshoe serve MODEL --image vllm/vllm-openai:latest        vLLM in a container
  gumshoe serve MODEL --check                                check the server, then stop it
  gumshoe serve MODEL --check --url http://host:8000/v1      check a server that is already running

--check tests native calls, streaming, and whether conversations reach the model as they were trained, token by token.
Exit code 1: an item is wrong. Native calls are not judged if the model makes none; --ask sets a prompt that makes it do
so.

Keys for -p: gumshoe config eval serve
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EXAMPLES
    parser.add_argument("model", type=Path, metavar="MODEL", help="model folder, as `gumshoe train` writes it")
    parser.add_argument("--port", help="port to listen on; 0: a free one (default 8000)", default="8000")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--backend", help="auto (default), vllm or transformers")
    parser.add_argument("--python", help="Python of the serving environment (default: this one)")
    parser.add_argument("--image", help="container image of vLLM's server, run with docker instead of --python")
    parser.add_argument("--check", action="store_true", help="check the served model, item by item, and exit")
    parser.add_argument(
        "--url", type=web_address, help="with --check: base URL of a running server, such as http://host:8000/v1"
    )
    parser.add_argument("--served-name", help="with --url: name of the model there (default: the folder's path)")
    parser.add_argument("--ask", help="with --check: prompt that makes the model call a tool")
    parser.add_argument("--log", type=Path, help="file for the server's output (default: a temporary one)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="set a key")


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM; with --check, until all is checked."""
    from gumshoe.eval.serve.server import ModelServer

    if arguments.url is not None:
        if not arguments.check:
            raise ConfigError("--url needs --check: it checks a server that is already running")
        return _check(arguments, arguments.url, arguments.served_name or str(arguments.model))
    config = _config(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    server = ModelServer(arguments.model, config, log=arguments.log)
    try:
        server.start()
        print(f"$ {server.shell_command}")
        print(f"serving {server.folder} with {server.backend}, log {server.log}")
        print(f"  base_url  {server.base_url}\n  model     {server.model}", flush=True)
        if arguments.check:
            return _check(arguments, server.base_url, server.model)
        print("Ctrl-C stops it", flush=True)
        server.wait()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        server.close()
    return 0


def _config(arguments: argparse.Namespace) -> ServeConfig:
    """The config from the flags, then the overrides. Raises ConfigError."""
    flags = {name: getattr(arguments, name) for name in ("port", "host", "backend", "python", "image")}
    given = {name: value for name, value in flags.items() if value is not None}
    return validate(ServeConfig, apply_overrides(given, arguments.param), origin="options")


def _check(arguments: argparse.Namespace, base_url: str, model: str) -> int:
    """Prints one line per item; returns 1 if any is wrong."""
    from gumshoe.eval.serve.check import ASK, check_server

    counts: Counter[str] = Counter()
    for verdict in check_server(base_url, model, arguments.model, ask=arguments.ask or ASK):
        counts[verdict.status] += 1
        print(f"{verdict.status:<14} {verdict.item:<42} {verdict.seen}", flush=True)
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["wrong"] else 0


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
