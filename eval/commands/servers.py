"""The commands that serve until Ctrl-C: `serve` a model, `mcp` the tools, `openenv` episodes, `view` pages."""

from __future__ import annotations

import argparse
import signal
import socket
import webbrowser
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from gumshoe.config import apply_overrides, read_yaml, validate, web_address
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.config import ServeConfig
from gumshoe.text import plural

if TYPE_CHECKING:
    from gumshoe.eval.mcp.tool_session import McpConfig
    from gumshoe.eval.view.library import Library


SERVE_EXAMPLES = """\
examples:
  gumshoe serve runs/train/smollm2/model --port 8000
  gumshoe serve MODEL --python ~/vllm/bin/python             an environment with vLLM
  gumshoe serve MODEL --backend transformers --log server.log
  gumshoe serve MODEL -p max_length=32768 -p tensor_parallel=2
  gumshoe serve MODEL --check                                check the server, then stop it
  gumshoe serve MODEL --check --url http://host:8000/v1      check a server that is already running

--check tests native calls, streaming, and whether conversations reach the model as they were trained, token by token.
Exit code 1: an item is wrong. Native calls are not judged if the model makes none; --ask sets a prompt that makes it do
so.

Keys for -p: gumshoe config eval serve
"""


def configure_serve(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = SERVE_EXAMPLES
    parser.add_argument("model", type=Path, metavar="MODEL", help="model folder, as `gumshoe train` writes it")
    parser.add_argument("--port", help="port to listen on; 0: a free one (default 8000)", default="8000")
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--backend", help="auto (default), vllm or transformers")
    parser.add_argument("--python", help="Python of the serving environment (default: this one)")
    parser.add_argument("--check", action="store_true", help="check the served model, item by item, and exit")
    parser.add_argument(
        "--url", type=web_address, help="with --check: base URL of a running server, such as http://host:8000/v1"
    )
    parser.add_argument("--served-name", help="with --url: name of the model there (default: the folder's path)")
    parser.add_argument("--ask", help="with --check: prompt that makes the model call a tool")
    parser.add_argument("--log", type=Path, help="file for the server's output (default: a temporary one)")
    parser.add_argument("-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="set a key")


def run_serve(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C or SIGTERM; with --check, until all is checked."""
    from gumshoe.eval.serve.server import ModelServer

    if arguments.url is not None:
        if not arguments.check:
            raise ConfigError("--url needs --check: it checks a server that is already running")
        return _check_model(arguments, arguments.url, arguments.served_name or str(arguments.model))
    config = _serve_config(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    server = ModelServer(arguments.model, config, log=arguments.log)
    try:
        server.start()
        print(f"$ {server.prepared.shell_command}")
        print(f"serving {server.folder} with {server.prepared.backend}, log {server.log}")
        print(f"  base_url  {server.base_url}\n  model     {server.model}", flush=True)
        if arguments.check:
            return _check_model(arguments, server.base_url, server.model)
        print("Ctrl-C stops it", flush=True)
        server.wait()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        server.close()
    return 0


def _serve_config(arguments: argparse.Namespace) -> ServeConfig:
    """The config from the flags, then the overrides. Raises ConfigError."""
    flags = {name: getattr(arguments, name) for name in ("port", "host", "backend", "python")}
    given = {name: value for name, value in flags.items() if value is not None}
    return validate(ServeConfig, apply_overrides(given, arguments.param), origin="options")


def _check_model(arguments: argparse.Namespace, base_url: str, model: str) -> int:
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


MCP_EXAMPLES = """\
examples:
  gumshoe mcp .                                                    over standard input and output, for a coding agent
  gumshoe mcp ~/shop --entrypoint "pytest -x"                      what the agent may run and debug
  gumshoe mcp . --model my-seeker --endpoint http://127.0.0.1:8000/v1    a model investigates (see gumshoe serve)
  gumshoe mcp . --http --port 7118                                 over HTTP, for clients on this machine
  gumshoe mcp . -p sandbox.kind=bubblewrap -p tools=[eval,pdb]

A client gets the debugger, suspects, trace, whatif, vary, eval, view, grep and listdir on a copy of PATH in a sandbox,
and `investigate`, which looks for the cause and reports it. Your files are read, never written. docs/mcp.md has the
settings for Claude Code, Codex, Cursor, OpenHands and VS Code.
"""
MCP_PORT = 7118


def configure_mcp(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    from gumshoe.collect.commands.arguments import add_repository_arguments

    parser.epilog = MCP_EXAMPLES
    add_repository_arguments(parser, entrypoint="command that runs the tests")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file: tools, policy, agent, limits, sandbox")
    parser.add_argument(
        "--model", metavar="NAME", help="model that investigates: an entry of llm.yaml, or a model of the endpoint"
    )
    parser.add_argument("--endpoint", metavar="URL", help="OpenAI-compatible server")
    parser.add_argument(
        "-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override of the config"
    )
    parser.add_argument("--http", action="store_true", help="serve over HTTP instead of standard input and output")
    _add_access_arguments(parser, default_port=MCP_PORT)


def run_mcp(arguments: argparse.Namespace) -> int:
    """Serves until the client leaves, or until Ctrl-C. Raises GumshoeError."""
    from gumshoe.collect.commands.arguments import repository_options
    from gumshoe.collect.policies.registry import check_policy
    from gumshoe.env.sandboxes.open import require_sandbox
    from gumshoe.eval.mcp.server import PATH, http_app, make_server, run_stdio
    from gumshoe.eval.mcp.tool_session import Repository

    config = _mcp_config(arguments)
    check_policy(config.policy)
    if not arguments.path.is_dir():
        raise TaskError(f"no folder {arguments.path}: give the folder of a repository")
    repository = Repository(arguments.path.resolve(), repository_options(arguments))
    require_sandbox([repository.task()], config.sandbox, trusted=False)
    server = make_server(repository, config)
    if arguments.http:
        from gumshoe.eval.web import serve_programs

        app = http_app(server, config)
        serve_programs(app, "MCP", host=arguments.host, port=arguments.port, token=arguments.token, path=PATH)
    else:
        run_stdio(server)
    return 0


def _mcp_config(arguments: argparse.Namespace) -> McpConfig:
    from gumshoe.collect.commands.arguments import policy_of
    from gumshoe.collect.policies.llm import with_llm
    from gumshoe.eval.mcp.tool_session import McpConfig

    data = read_yaml(arguments.config) if arguments.config is not None else {}
    policy = policy_of(arguments)
    if policy:
        data = {**data, "policy": {"kind": "openai", **policy}}
    config = validate(McpConfig, apply_overrides(data, arguments.param), origin=str(arguments.config or "options"))
    return config.model_copy(update={"policy": with_llm(config.policy)})


OPENENV_EXAMPLES = """\
examples:
  gumshoe openenv casebook                                   every task of a source, at http://127.0.0.1:8000
  gumshoe openenv tasks/mine -p sessions=8 -p agent.kind=debug
  gumshoe openenv casebook --host 0.0.0.0                    for other machines, which send the printed token
  openenv validate --url http://127.0.0.1:8000               OpenEnv's own check

docs/openenv.md shows how to train through it with TRL, and how to deploy it as a container.
"""
OPENENV_PORT = 8000


def configure_openenv(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = OPENENV_EXAMPLES
    parser.add_argument("source", metavar="SOURCE", help="task source, such as casebook or a folder with a task set")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file: tasks, agent, sandbox, limits, weights")
    parser.add_argument(
        "-p", "--param", action="append", default=[], metavar="KEY=VALUE", help="override of the config"
    )
    _add_access_arguments(parser, default_port=OPENENV_PORT)


def run_openenv(arguments: argparse.Namespace) -> int:
    """Serves until Ctrl-C. Raises GumshoeError."""
    from gumshoe.eval.openenv import OpenEnvConfig, make_app
    from gumshoe.eval.web import serve_programs

    data: dict[str, Any] = read_yaml(arguments.config) if arguments.config is not None else {}
    data = {**data, "tasks": {**data.get("tasks", {}), "source": arguments.source}}
    config = validate(OpenEnvConfig, apply_overrides(data, arguments.param), origin=str(arguments.config or "options"))
    serve_programs(make_app(config), "OpenEnv", host=arguments.host, port=arguments.port, token=arguments.token)
    return 0


def _add_access_arguments(parser: argparse.ArgumentParser, *, default_port: int | None) -> None:
    """Adds where a server listens and who may ask it; without a default port, it is the viewer's."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: only this machine)")
    shown = f"{VIEW_PORT}, or a free one if it is in use" if default_port is None else default_port
    parser.add_argument("--port", type=int, default=default_port, help=f"port; 0 takes a free one (default: {shown})")
    parser.add_argument("--token", help="access token (default: random, if other hosts can connect)")


VIEW_EXAMPLES = """\
examples:
  gumshoe view runs/collect/demo                       a run, finished or in progress
  gumshoe view runs/demo                               every run, dataset and evaluation in a folder
  gumshoe view datasets/demo --model runs/train/model  with the trained tokens marked
  gumshoe view runs/eval/demo --static site            as files: open site/index.html
  gumshoe view runs/demo --host 0.0.0.0                for colleagues; the printed URL contains a token
"""
VIEW_PORT = 7117


def configure_view(parser: argparse.ArgumentParser) -> None:
    """Declares the command line."""
    parser.epilog = VIEW_EXAMPLES
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="folder of a run, dataset or evaluation")
    parser.add_argument("--static", type=Path, metavar="OUT", help="write static files instead of serving")
    parser.add_argument("--model", type=Path, metavar="FOLDER", help="model whose tokenizer is used for the mask")
    parser.add_argument(
        "--tasks", action="append", default=[], metavar="SOURCE", help="task source with the gold patches (repeatable)"
    )
    _add_access_arguments(parser, default_port=None)
    parser.add_argument("--name", action="append", default=[], help="additional host name of this server (repeatable)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run_view(arguments: argparse.Namespace) -> int:
    """Serves, or writes files. Raises ConfigError, DatasetError and TaskError."""
    from gumshoe.eval.view.library import open_library
    from gumshoe.eval.view.sources import GoldPatches

    gold = GoldPatches(arguments.tasks)
    with open_library(arguments.paths, gold, arguments.model) as library:
        if arguments.static is not None:
            return _write_files(library, arguments.static)
        return _serve_page(library, arguments)


def _write_files(library: Library, out: Path) -> int:
    from gumshoe.eval.view.static import write_static

    catalog = library.catalog
    catalog.refresh()
    if not (catalog.entries() or catalog.live() or any(source.kind == "evaluation" for source in catalog.sources)):
        raise ConfigError("no episodes to write: try again once there are some")
    count = write_static(library, out)
    print(f"{plural(count, 'episode')}: open {out / 'index.html'}")
    return 0


def _serve_page(library: Library, arguments: argparse.Namespace) -> int:
    from gumshoe.eval.view.server import make_app
    from gumshoe.eval.web import WebServer, is_loopback, make_token

    loopback, token = is_loopback(arguments.host), make_token(arguments.token, arguments.host)
    names = [*arguments.name, *([] if loopback else [socket.gethostname(), arguments.host])]
    app = make_app(library, loopback=loopback, names=names, token=token)
    try:
        server = WebServer(app, arguments.host, VIEW_PORT if arguments.port is None else arguments.port)
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
