"""Tools of MCP servers: servers made with the official SDK, in a sandbox and on the host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.spaces import action_space
from gumshoe.errors import ConfigError
from gumshoe.records import Limits, Observation, Task, WorkspaceSpec
from gumshoe.tools import make_tools
from support.sandboxes.processes import descendants
from support.tools.tool_bench import Bench

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

print("starting up")
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or request.get("method") is None:
        continue
    number, method = request["id"], request["method"]
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    elif method == "tools/list" and "paged" in sys.argv and not request["params"].get("cursor"):
        result = {"tools": [TOOL], "nextCursor": "more"}
    elif method == "tools/list" and "paged" in sys.argv:
        result = {"tools": [dict(TOOL, name="second")]}
    elif method == "tools/list":
        result = {"tools": []}
    elif request["params"]["name"] == "second":
        error = {"code": -32602, "message": "not today"}
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
        continue
    else:
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}))
        print(json.dumps({"jsonrpc": "2.0", "id": "mine", "method": "ping"}), flush=True)
        answer = json.loads(sys.stdin.readline())
        assert answer == {"jsonrpc": "2.0", "id": "mine", "result": {}}, answer
        picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        result = {"content": [{"type": "text", "text": "seen"}, picture]}
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
""".replace("TOOL", '{"name": "first", "inputSchema": {"type": "object", "properties": {"any": True}}}')

IN_SANDBOX = "mcp:python server.py"

Open = Callable[..., DebugEnv]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the servers in it."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in {"server.py": SERVER, "plain.py": PLAIN, "notes.txt": "buy milk\n"}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def open_env(project: Path) -> Generator[Open]:
    """Opens environments on the repository; all are closed at the end."""
    envs: list[DebugEnv] = []

    def begin(*tools: str, timeout: float = 60.0) -> DebugEnv:
        task = Task(
            id="notes",
            source="test",
            problem_statement="look",
            workspace=WorkspaceSpec(path=str(project)),
            entrypoint=("python", "-m", "pytest"),
            limits=Limits(command_timeout_s=timeout),
        )
        envs.append(DebugEnv(task, tools=tools, sandbox=SandboxConfig(kind="bubblewrap", packages=("mcp",))))
        return envs[-1]

    yield begin
    for env in envs:
        env.close()


@pytest.fixture(scope="module", params=["sandbox", "host"])
def bench(request: pytest.FixtureRequest, open_env: Open, project: Path) -> Bench:
    """A server with its tools, beside one tool of our own."""
    here = IN_SANDBOX if request.param == "sandbox" else f"mcp-host:{sys.executable} '{project}/server.py'"
    env = open_env("view", here)
    env.reset()
    return Bench(env)


def within(bench: Bench, seconds: float) -> None:
    limits = Limits(command_timeout_s=seconds)
    bench.workspace.task = bench.workspace.task.model_copy(update={"limits": limits})


@pytest.mark.needs("bubblewrap")
def test_the_tools_of_a_server_stand_beside_our_own_and_their_errors_are_observations(bench: Bench):
    schemas = {schema.name: schema for schema in bench.env.toolbox.schemas}
    assert list(schemas) == ["view", "read", "count", "change", "hang", "die"]
    assert schemas["read"].description == "Read a file."
    assert schemas["count"].parameters["required"] == ["words"]
    assert bench.env.action_space == action_space(list(bench.env.toolbox.tools.values()))
    assert bench.env.step((2, {"words": ("ab",)}))[4]["observation"].data == {"ab": 2}
    assert bench.text("read", path="notes.txt") == "buy milk\n"
    counted = bench.call("count", words=["one", "three"])
    assert (counted.tool, counted.data, counted.failure) == ("count", {"one": 3, "three": 5}, None)
    missing = bench.call("read", path="/nowhere")
    assert kind(missing) == "tool_error"
    assert "No such file or directory: '/nowhere'" in missing.text
    assert "Input should be a valid list" in bench.text("count", words="one")


@pytest.mark.needs("bubblewrap")
def test_a_server_that_dies_is_started_by_the_next_call(bench: Bench):
    dead = bench.call("die")
    assert kind(dead) == "server_ended"
    assert dead.text.startswith("error: the tool's server failed: it ")
    assert dead.text.endswith(": no memory left; the next call restarts it")
    assert bench.call("count", words=["a"]).data == {"a": 1}


@pytest.mark.needs("bubblewrap")
def test_a_call_that_takes_too_long_ends_the_server(bench: Bench):
    bench.call("count", words=["up"])
    within(bench, 0.5)
    late = bench.call("hang")
    within(bench, 60.0)
    assert late.text == "error: timed out after 0.5 s: the tool's server was ended; the next call restarts it"
    assert kind(late) == "timed_out"
    assert bench.call("count", words=["a"]).data == {"a": 1}


@pytest.mark.needs("bubblewrap")
def test_a_server_in_the_sandbox_works_on_the_workspace_and_nothing_else(open_env: Open, project: Path):
    bench = Bench(reset(open_env(IN_SANDBOX)))
    assert bench.text("change", path="notes.txt") == "no output"
    assert "-buy milk" in bench.env.patch()
    assert (project / "notes.txt").read_text() == "buy milk\n"
    assert "No such file" in bench.text("read", path=str(project / "notes.txt"))


@pytest.mark.needs("bubblewrap")
def test_a_server_that_was_called_is_new_after_a_snapshot(open_env: Open):
    bench = Bench(reset(open_env(IN_SANDBOX)))
    before = bench.env.snapshot()
    assert bench.env.is_whole(before)
    bench.call("count", words=["a"])
    assert not bench.env.is_whole(bench.env.snapshot())
    bench.env.restore(before)
    assert bench.env.is_whole(bench.env.snapshot())
    assert bench.call("count", words=["a"]).data == {"a": 1}


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("host", [False, True])
def test_nothing_is_left_of_an_episode(open_env: Open, project: Path, host: bool):
    before = descendants(os.getpid())
    env = reset(open_env(f"mcp-host:{sys.executable} '{project}/server.py'" if host else IN_SANDBOX, timeout=0.5))
    assert descendants(os.getpid()) - before
    Bench(env).call("hang")
    env.close()
    assert descendants(os.getpid()) <= before


@pytest.mark.needs("bubblewrap")
def test_pages_pings_notifications_and_pictures(open_env: Open):
    bench = Bench(reset(open_env("mcp:python plain.py paged")))
    assert list(bench.env.toolbox.tools) == ["first", "second"]
    assert bench.text("first") == "seen\n[image]"
    assert bench.text("second") == "error: not today"


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (["mcp:no-such-program"], "did not start: no-such-program: No such file or directory"),
        (["mcp-host:no-such-program"], "did not start: no-such-program: No such file or directory"),
        (
            ["mcp:python -c 'print(1); raise SystemExit(\"no key\")'"],
            "did not start: it ended with exit code 1: no key",
        ),
        (["mcp:python -c 'raise SystemExit(print(end=\"{\") or 2)'"], "did not start: it ended with exit code 2"),
        (["mcp:python -c 'print(\"x\" * (1 << 20))'"], "did not start: it wrote a line of more than 1 MiB"),
        (["mcp:python plain.py"], "has no tools"),
        (["mcp:python plain.py paged"] * 2, "has a tool 'first', but another tool has that name"),
    ],
)
def test_a_server_that_cannot_serve_is_a_mistake_of_the_config(open_env: Open, entries: list[str], why: str):
    with pytest.raises(ConfigError) as error:
        open_env(*entries).reset()
    assert str(error.value) == f"tools: {entries[0]!r} {why}"


@pytest.mark.parametrize("entry", ["mcp:", "mcp-host: ", "mcp:'half"])
def test_an_entry_without_a_command_is_refused_at_once(open_env: Open, entry: str):
    with pytest.raises(ConfigError, match=r"names no command|cannot be read"):
        open_env(entry)


def test_a_missing_package_is_named_with_its_extra():
    code = "import sys; sys.modules['mcp'] = None; from gumshoe.tools.toolbox import *; make_toolbox(['mcp:x'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stderr.endswith("ConfigError: tools: 'mcp:x' needs another package: pip install 'gumshoe-debug[mcp]'\n")


def test_tools_outside_of_an_episode_are_refused():
    with pytest.raises(ConfigError, match="known only in an episode"):
        make_tools(["mcp:python server.py"])


@pytest.fixture
def collect(tmp_path: Path) -> Callable[[str], int]:
    """Runs `gumshoe collect` on one task, with a script that counts the letters of a word and submits."""
    calls = [{"id": "1", "name": "count", "arguments": {"words": ["one"]}}, {"id": "2", "name": "submit"}]
    lines = (json.dumps({"text": "", "tool_calls": [call]}) for call in calls)
    (tmp_path / "script.jsonl").write_text("\n".join(lines))

    def run(entry: str) -> int:
        config = {
            "out": str(tmp_path / "run"),
            "tasks": {"source": "casebook", "ids": ["casebook/ledger"]},
            "policy": {"kind": "scripted", "script": str(tmp_path / "script.jsonl")},
            "sandbox": {"kind": "bubblewrap"},
            "agent": {"tools": ["submit", entry]},
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        return main(["collect", str(tmp_path / "config.json")])

    return run


@pytest.mark.needs("bubblewrap")
def test_a_run_records_the_tools_and_their_answers(project: Path, collect: Callable[[str], int], tmp_path: Path):
    assert collect(f"mcp-host:{sys.executable} '{project}/server.py'") == 0
    (trajectory,) = read_trajectories(tmp_path / "run")
    assert [tool.name for tool in trajectory.tools] == ["submit", "read", "count", "change", "hang", "die"]
    assert trajectory.steps[0].observations[0].data == {"one": 3}


@pytest.mark.needs("bubblewrap")
def test_a_run_says_in_one_line_that_a_server_does_not_start(
    collect: Callable[[str], int], capsys: pytest.CaptureFixture[str]
):
    assert collect("mcp:no-such-program") == 2
    why = "tools: 'mcp:no-such-program' did not start: no-such-program: No such file or directory"
    assert capsys.readouterr().err.splitlines()[-1].endswith(why)


def kind(observation: Observation) -> str | None:
    return observation.failure and observation.failure.kind


def reset(env: DebugEnv) -> DebugEnv:
    env.reset()
    return env
