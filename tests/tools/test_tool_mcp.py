"""Tools of MCP servers: servers made with the official SDK, in a sandbox and on the host."""

import json
import os
import sys
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.env.spaces import action_space
from gumshoe.errors import ConfigError
from gumshoe.records import Limits
from gumshoe.tools import make_tools
from support.folder_tasks import write_files
from support.sandboxes.processes import descendants
from support.tools.tool_bench import Open

pytestmark = pytest.mark.needs("bubblewrap")

SERVER = '''\
import os
import subprocess
import sys
import time

from mcp.server.fastmcp import FastMCP

server = FastMCP("notes")
os.chdir(os.path.dirname(os.path.abspath(__file__)))

@server.tool()
def read(path: str) -> str:
    """Read a file."""
    with open(path) as file:
        return file.read()

@server.tool()
def count(words: list[str]) -> dict[str, int]:
    """Count the letters of words."""
    return {word: len(word) for word in words}

@server.tool()
def change(path: str) -> str:
    """Empty a file."""
    open(path, "w").close()
    return ""

@server.tool()
def hang() -> str:
    """Start a program and never answer."""
    subprocess.Popen(["sleep", "1000"])
    time.sleep(1000)

@server.tool()
def die() -> str:
    """End."""
    print("no memory left", file=sys.stderr, flush=True)
    os._exit(3)

server.run()
'''
PLAIN = """\
import json
import sys

TOOL = {"name": "first", "inputSchema": {"type": "object", "properties": {"any": True}}}
PAGES = [{"tools": [TOOL], "nextCursor": "more"}, {"tools": [dict(TOOL, name="second")]}]
SEEN = [{"type": "text", "text": "seen"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}]

def send(**fields):
    print(json.dumps({"jsonrpc": "2.0", **fields}), flush=True)

print("starting up")
for line in sys.stdin:
    request = json.loads(line)
    number, method, params = (request.get(name) for name in ("id", "method", "params"))
    if number is None or method is None:
        continue
    if method == "initialize":
        server = {"name": "x", "version": "1"}
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": server})
    elif method == "tools/list":
        send(id=number, result=PAGES[bool(params.get("cursor"))] if "paged" in sys.argv else {"tools": []})
    elif params["name"] == "second":
        send(id=number, error={"code": -32602, "message": "not today"})
    else:
        send(method="notifications/message", params={})
        send(id="mine", method="ping")
        answer = json.loads(sys.stdin.readline())
        assert answer == {"jsonrpc": "2.0", "id": "mine", "result": {}}, answer
        send(id=number, result={"content": SEEN})
"""
IN_SANDBOX = "mcp:python server.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with the servers in it."""
    return write_files(tmp_path / "project", {"server.py": SERVER, "plain.py": PLAIN, "notes.txt": "buy milk\n"})


@pytest.fixture
def open_servers(open_bench: Open) -> Open:
    """Opens sandboxes with the SDK on the repository, with these tools."""
    return lambda *tools, **more: open_bench("bubblewrap", tools=tools, sandbox={"packages": ("mcp",)}, **more)


@pytest.fixture(params=["sandbox", "host"])
def entry(request: pytest.FixtureRequest, project: Path) -> str:
    """A server, as a config names it."""
    return IN_SANDBOX if request.param == "sandbox" else f"mcp-host:{sys.executable} '{project}/server.py'"


def test_the_tools_of_a_server_stand_beside_our_own(open_servers: Open, entry: str) -> None:
    bench = open_servers("view", entry)
    schemas = {schema.name: schema for schema in bench.env.toolbox.schemas}
    assert list(schemas) == ["view", "read", "count", "change", "hang", "die"]
    assert schemas["read"].description == "Read a file."
    assert schemas["count"].parameters["required"] == ["words"]
    assert bench.env.action_space == action_space(list(bench.env.toolbox.tools.values()))
    assert bench.env.step((2, {"words": ("ab",)}))[4]["observation"].data == {"ab": 2}
    assert bench.text("read", path="notes.txt") == "buy milk\n"
    assert bench.data("count", words=["one", "three"]) == {"one": 3, "three": 5}
    assert bench.failure("read", path="/nowhere") == "tool_error"
    assert "No such file or directory: '/nowhere'" in bench.text("read", path="/nowhere")
    assert "Input should be a valid list" in bench.text("count", words="one")


def test_a_server_that_dies_or_hangs_is_started_by_the_next_call(open_servers: Open, entry: str) -> None:
    before = descendants(os.getpid())
    bench = open_servers(entry)
    assert descendants(os.getpid()) - before
    dead = bench.text("die")
    assert dead.startswith("error: the tool's server failed: it ")
    assert dead.endswith(": no memory left; the next call restarts it")
    assert bench.data("count", words=["a"]) == {"a": 1}
    task = bench.workspace.task
    bench.workspace.task = task.model_copy(update={"limits": Limits(command_timeout_s=0.5)})
    assert bench.text("hang") == "error: timed out after 0.5 s: the tool's server was ended; the next call restarts it"
    bench.workspace.task = task
    assert bench.data("count", words=["a"]) == {"a": 1}
    bench.env.close()
    assert descendants(os.getpid()) <= before


def test_a_server_in_the_sandbox_works_on_the_workspace_alone(open_servers: Open, project: Path) -> None:
    bench = open_servers(IN_SANDBOX)
    assert bench.text("change", path="notes.txt") == "no output"
    assert "-buy milk" in bench.env.patch()
    assert (project / "notes.txt").read_text() == "buy milk\n"
    assert "No such file" in bench.text("read", path=str(project / "notes.txt"))


def test_a_server_that_was_called_is_new_after_a_snapshot(open_servers: Open) -> None:
    bench = open_servers(IN_SANDBOX)
    before = bench.env.snapshot()
    assert bench.env.is_whole(before)
    bench.call("count", words=["a"])
    assert not bench.env.is_whole(bench.env.snapshot())
    bench.env.restore(before)
    assert bench.env.is_whole(bench.env.snapshot())
    assert bench.data("count", words=["a"]) == {"a": 1}


def test_pages_pings_notifications_and_pictures(open_servers: Open) -> None:
    bench = open_servers("mcp:python plain.py paged")
    assert list(bench.env.toolbox.tools) == ["first", "second"]
    assert bench.text("first") == "seen\n[image]"
    assert bench.text("second") == "error: not today"


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (["mcp:no-such-program"], "did not start: no-such-program: No such file or directory"),
        (["mcp-host:no-such-program"], "did not start: no-such-program: No such file or directory"),
        (["mcp:python -c 'print(1); exit(\"no key\")'"], "did not start: it ended with exit code 1: no key"),
        (["mcp:python -c 'raise SystemExit(print(end=\"{\") or 2)'"], "did not start: it ended with exit code 2"),
        (["mcp:python -c 'print(\"x\" * (1 << 20))'"], "did not start: it wrote a line of more than 1 MiB"),
        (["mcp:python plain.py"], "has no tools"),
        (["mcp:python plain.py paged"] * 2, "has a tool 'first', but another tool has that name"),
        (["mcp:"], "names no command"),
        (["mcp-host: "], "names no command"),
        (["mcp:'half"], "cannot be read: No closing quotation"),
    ],
)
def test_a_server_that_cannot_serve_is_refused(open_servers: Open, entries: list[str], why: str) -> None:
    with pytest.raises(ConfigError) as error:
        open_servers(*entries)
    assert str(error.value) == f"tools: {entries[0]!r} {why}"


def test_tools_outside_of_an_episode_are_refused() -> None:
    with pytest.raises(ConfigError, match="known only in an episode"):
        make_tools([IN_SANDBOX])


def test_a_run_records_the_tools_and_their_answers(project: Path, tmp_path: Path) -> None:
    calls = [{"id": "1", "name": "count", "arguments": {"words": ["one"]}}, {"id": "2", "name": "submit"}]
    script = "\n".join(json.dumps({"text": "", "tool_calls": [call]}) for call in calls)
    config = {
        "out": str(tmp_path / "run"),
        "tasks": {"source": "casebook", "ids": ["casebook/ledger"]},
        "policy": {"kind": "scripted", "script": str(tmp_path / "script.jsonl")},
        "sandbox": {"kind": "bubblewrap"},
        "agent": {"tools": ["submit", f"mcp-host:{sys.executable} '{project}/server.py'"]},
    }
    write_files(tmp_path, {"script.jsonl": script, "config.json": json.dumps(config)})
    assert main(["collect", str(tmp_path / "config.json")]) == 0
    (trajectory,) = read_trajectories(tmp_path / "run")
    assert [tool.name for tool in trajectory.tools] == ["submit", "read", "count", "change", "hang", "die"]
    assert trajectory.steps[0].observations[0].data == {"one": 3}
