"""`gumshoe view`: look at traces, datasets and evaluations in a browser."""

from __future__ import annotations

import argparse
import socket
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError
from gumshoe.text import plural

if TYPE_CHECKING:
    from gumshoe.eval.view.library import Library

__all__ = ["configure", "run"]

EXAMPLES = """\
examples:
  gumshoe view runs/collect/demo                       a run, finished or in progress
  gumshoe view runs/demo                               every run, dataset and evaluation in a folder
  gumshoe view datasets/demo --model runs/train/model  with the trained tokens marked
  gumshoe view runs/eval/demo --static site            as files: open site/index.html
  gumshoe view runs/demo --host 0.0.0.0                for colleagues; the printed URL contains a token
"""
PORT = 7117


def configure(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = EXAMPLES
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="folder of a run, dataset or evaluation")
    parser.add_argument("--static", type=Path, metavar="OUT", help="write static files instead of serving")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="model whose tokenizer is used for the mask")
    parser.add_argument(
        "--tasks", action="append", default=[], metavar="SOURCE", help="task source with the gold patches (repeatable)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: only this machine)")
    parser.add_argument("--port", type=int, help=f"port (default {PORT}, or a free one if it is in use)")
    parser.add_argument("--token", help="access token (default: random, if other hosts can connect)")
    parser.add_argument("--name", action="append", default=[], help="additional host name of this server (repeatable)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Serves, or writes files. Raises ConfigError, DatasetError and TaskError."""
    from gumshoe.eval.view.library import open_library
    from gumshoe.eval.view.sources import GoldPatches

    gold = GoldPatches(arguments.tasks)
    with open_library(arguments.paths, gold, arguments.model) as library:
        if arguments.static is not None:
            return _write(library, arguments.static)
        return _serve(library, arguments)


def _write(library: Library, out: Path) -> int:
    from gumshoe.eval.view.static import write_static

    library.catalog.refresh()
    count = write_static(library, out)
    print(f"{plural(count, 'episode')}: open {out / 'index.html'}")
    return 0


def _serve(library: Library, arguments: argparse.Namespace) -> int:
    from gumshoe.eval.view.server import make_app
    from gumshoe.eval.web import WebServer, is_loopback, make_token

    loopback, token = is_loopback(arguments.host), make_token(arguments.token, arguments.host)
    names = [*arguments.name, *([] if loopback else [socket.gethostname(), arguments.host])]
    app = make_app(library, loopback=loopback, names=names, token=token)
    try:
        server = WebServer(app, arguments.host, PORT if arguments.port is None else arguments.port)
    except ConfigError:
        if arguments.port is not None:
            raise
        server = WebServer(app, arguments.host, 0)
    library.catalog.start()
    address = f"{server.url}/" + (f"?token={token}" if token is not None else "")
    print(f"Look at {address} (Ctrl-C ends it)", flush=True)
    if arguments.open:
        webbrowser.open(address)
    server.serve()
    return 0
