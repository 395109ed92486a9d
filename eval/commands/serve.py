"""`gumshoe serve MODEL`: a model folder behind an OpenAI-compatible endpoint, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path
from types import FrameType

from gumshoe.config import apply_overrides, validate
from gumshoe.eval.config import ServeConfig

__all__ = ["configure", "run"]

EXAMPLES = """\
examples:
  gumshoe serve runs/train/tiny/model --port 8000
  gumshoe serve MODEL --python ~/vllm/bin/python             the environment that has vLLM
  gumshoe serve MODEL --backend transformers --log server.log
  gumshoe serve MODEL -p max_length=32768 -p tensor_parallel=2

fields for -p: those of gumshoe.eval.config.ServeConfig
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EXAMPLES
    parser.add_argument("model", type=Path, metavar="MODEL", help="model folder, as `gumshoe train` writes it")
    parser.add_argument("--port", help="port to listen on; 0: a free one (default 8000)", default="8000")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--backend", help="auto (default), vllm or transformers")
    parser.add_argument("--python", help="interpreter of the environment that serves (default: this one)")
    parser.add_argument("--log", type=Path, help="file for all that the server prints (default: a temporary one)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="set a field")


def run(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM."""
    from gumshoe.eval.serve.server import ModelServer

    config = _config(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    server = ModelServer(arguments.model, config, log=arguments.log)
    try:
        server.start()
        print(f"$ {server.shell_command}")
        print(f"serving {server.folder} with {server.backend}, log {server.log}")
        print(f"  base_url  {server.base_url}\n  model     {server.model}\nCtrl-C stops it", flush=True)
        server.wait()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        server.close()
    return 0


def _config(arguments: argparse.Namespace) -> ServeConfig:
    """The flags and then the overrides. Raises ConfigError."""
    flags = {name: getattr(arguments, name) for name in ("port", "host", "backend", "python")}
    given = {name: value for name, value in flags.items() if value is not None}
    return validate(ServeConfig, apply_overrides(given, arguments.param), origin="gumshoe serve")


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
