"""`gumshoe mcp`, driven by the SDK's own client as a coding agent drives it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult, CancelledNotification, ClientNotification, TextContent

from gumshoe.env.tasks import load_tasks
from gumshoe.eval.mcp.server import make_server
from gumshoe.eval.mcp.tool_session import McpConfig, Repository
from gumshoe.records import ContextPack
from support.provider_server import chat, provider
from support.sandboxes.processes import descendants, state

pytestmark = pytest.mark.needs("bubblewrap")

OPTIONS = ("-p", "sandbox.kind=bubblewrap")
TOOLS = ["listdir", "view", "grep", "eval", "suspects", "trace", "whatif", "vary", "pdb", "investigate"]
LIMIT_S = 60.0


def run_alone(task: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    """Runs a coroutine in a thread of its own: browser tests of the same process leave a loop running in theirs."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, task, *arguments).result()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A case of the casebook with its bug, as a folder of a user's."""
    ((task, _),) = load_tasks("casebook", ids=("casebook/ledger",))
    folder = tmp_path / "ledger"
    shutil.copytree(str(task.workspace.path), folder)
    for path, text in task.workspace.overlay.items():
        assert text is not None
        (folder / path).write_text(text)
    return folder


def arguments(folder: Path, *options: str) -> list[str]:
    return ["-m", "gumshoe", "mcp", str(folder), *OPTIONS, *options]


@asynccontextmanager
async def in_process(folder: Path, **config: Any) -> AsyncGenerator[ClientSession]:
    """A client of a server in this process: what it answers does not depend on the way there."""
    given = McpConfig.model_validate({"sandbox": {"kind": "bubblewrap"}, **config})
    server = make_server(Repository(folder, {}), given)
    async with create_connected_server_and_client_session(server) as session:
        yield session


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def data_of(result: CallToolResult) -> dict[str, Any]:
    assert result.structuredContent is not None
    return result.structuredContent


def all_gone(pids: set[int]) -> bool:
    """Whether these processes end within a while."""
    deadline = time.monotonic() + LIMIT_S
    while any(state(pid) not in {"Z", ""} for pid in pids):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_an_agent_debugs_a_bug_to_its_failing_frame_and_nothing_is_left(ledger: Path) -> None:
    before = {path: path.read_bytes() for path in ledger.rglob("*") if path.is_file()}
    others = set(descendants(os.getpid()))
    seen: set[int] = set()
    temporary = ledger.parent / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    given = StdioServerParameters(command=sys.executable, args=arguments(ledger), env=environment)

    async def debug() -> None:
        async with stdio_client(given) as streams, ClientSession(*streams) as session:
            await session.initialize()
            listed = (await session.list_tools()).tools
            assert [tool.name for tool in listed] == TOOLS
            (pdb,) = (tool for tool in listed if tool.name == "pdb")
            assert pdb.inputSchema["required"] == ["command"]
            tested = await session.call_tool("eval", {})
            assert "2 failed" in text_of(tested)
            assert not tested.isError
            stopped = await session.call_tool("pdb", {"command": "b ledger/rates.py:28\nc\np exponent(money.currency)"})
            assert "ledger/rates.py:28" in text_of(stopped)
            assert data_of(stopped)["frames"][-1]["function"] == "convert"
            found = await session.call_tool("investigate", {"problem": "transfers to yen arrive too large"})
            pack = ContextPack.model_validate(found.structuredContent)
            assert pack.locations[0].path.startswith("ledger/")
            assert pack.locations[0].path in text_of(found)
            seen.update(set(descendants(os.getpid())) - others)

    run_alone(debug)
    assert len(seen) > 2
    assert all_gone(seen)
    assert list(temporary.iterdir()) == []
    assert {path: path.read_bytes() for path in ledger.rglob("*") if path.is_file()} == before


def test_edits_of_the_files_are_seen_by_the_next_call_and_breakpoints_follow(ledger: Path) -> None:
    rates = ledger / "ledger" / "rates.py"

    async def debug() -> None:
        async with in_process(ledger) as session:
            await session.call_tool("pdb", {"command": "b ledger/rates.py:28"})
            code = rates.read_text().replace("scaleb(-exponent(target))", "scaleb(-exponent(money.currency))")
            rates.write_text("# a new first line\n" + code)
            (ledger / "notes.txt").write_text("new")
            moved = await session.call_tool("pdb", {"command": "c"})
            assert "ledger/rates.py:29" in text_of(moved)
            assert "0 failed" in (text := text_of(await session.call_tool("eval", {}))) or "failed" not in text
            assert "notes.txt" in text_of(await session.call_tool("listdir", {}))
            (ledger / "notes.txt").unlink()
            assert "notes.txt" not in text_of(await session.call_tool("listdir", {}))

    run_alone(debug)


def test_a_wrong_call_says_what_the_right_one_is_and_an_investigation_without_a_result_is_an_error(
    ledger: Path,
) -> None:
    for test in (ledger / "tests").glob("test_*.py"):
        test.write_text("def test_nothing():\n    pass\n")

    async def call() -> None:
        async with in_process(ledger) as session:
            wrong = await session.call_tool("view", {"pth": "x"})
            assert wrong.isError
            assert "Usage: view(path: string" in text_of(wrong)
            assert data_of(wrong)["failure"]["kind"] == "bad_arguments"
            unknown = await session.call_tool("reboot", {})
            assert "no tool 'reboot'" in text_of(unknown)
            found = await session.call_tool("investigate", {})
            assert found.isError
            assert "nothing was found" in text_of(found)

    run_alone(call)


def test_a_model_investigates_and_its_report_is_the_answer(ledger: Path) -> None:
    report = {
        "locations": [{"path": "ledger/rates.py", "start": 28, "end": 28}],
        "findings": [{"fact": 1, "claim": "a test fails"}],
        "hypothesis": "the decimals of the wrong currency",
    }

    async def investigate(url: str) -> None:
        async with in_process(ledger, policy={"kind": "openai", "model": "seeker", "base_url": url}) as session:
            found = await session.call_tool("investigate", {"problem": "yen are wrong"})
            assert data_of(found)["hypothesis"] == "the decimals of the wrong currency"

    with provider(chat("I run the tests.", [("eval", {})]), chat("I report.", [("report", report)])) as model:
        run_alone(investigate, model.url)
    assert model.requests[0]["messages"][1]["content"] == "yen are wrong"
    assert "2 failed" in json.dumps(model.requests[1]["messages"][-1])


def test_a_cancelled_call_ends_its_program_and_the_next_one_works(ledger: Path) -> None:
    (ledger / "tests" / "test_slow.py").write_text("import time\n\ndef test_slow():\n    time.sleep(600)\n")

    others = set(descendants(os.getpid()))

    async def running() -> None:
        while not any(
            b"pytest" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid()) - others
        ):
            await anyio.sleep(0.05)

    async def cancel() -> None:
        async with in_process(ledger, command_timeout_s=500) as session, anyio.create_task_group() as group:
            await session.list_tools()
            group.start_soon(expect_cancelled, session)
            await running()
            # The SDK counts requests from 0: initialize, tools/list, tools/call.
            stop = {"method": "notifications/cancelled", "params": {"requestId": 2, "reason": "Escape was pressed"}}
            await session.send_notification(ClientNotification(CancelledNotification.model_validate(stop)))
            (ledger / "tests" / "test_slow.py").unlink()
            assert "2 failed" in text_of(await session.call_tool("eval", {}))

    async def expect_cancelled(session: ClientSession) -> None:
        with pytest.raises(McpError, match="Request cancelled"):
            await session.call_tool("eval", {})

    run_alone(cancel)


@contextmanager
def http_server(folder: Path, *options: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    argv = [sys.executable, *arguments(folder, "--http", "--port", "0", *options)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            address = server.stderr.readline().split()[2]
            yield server, address
        finally:
            server.send_signal(signal.SIGTERM)
            assert server.wait(LIMIT_S) is not None


def test_clients_over_http_have_sandboxes_of_their_own_that_go_with_them(ledger: Path) -> None:
    seen: set[int] = set()

    async def debug(url: str, pid: int) -> None:
        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            assert [tool.name for tool in (await session.list_tools()).tools] == TOOLS
            stopped = await session.call_tool("pdb", {"command": "b ledger/rates.py:28\nc"})
            async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as other:
                await other.initialize()
                both = await other.call_tool("pdb", {"command": "b"})
                assert "rates.py" not in text_of(both)
                seen.update(descendants(pid))
            assert "ledger/rates.py:28" in text_of(stopped)
            again = await session.call_tool("pdb", {"command": "p money.currency"})
            assert "EUR" in text_of(again)

    with http_server(ledger) as (server, url):
        run_alone(debug, url, server.pid)
        assert len(seen) > 2
        # The sessions have ended: their sandboxes are gone while the server is still there.
        assert all_gone(seen - {server.pid})
    assert server.returncode == 0


def test_a_killed_server_leaves_no_sandbox(ledger: Path) -> None:
    async def begin(url: str, pid: int) -> set[int]:
        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            await session.call_tool("listdir", {})
            return descendants(pid)

    with http_server(ledger) as (server, url):
        left = run_alone(begin, url, server.pid)
        server.send_signal(signal.SIGKILL)
    assert all_gone(left)


def test_a_client_may_send_absolute_paths_of_its_own_folder(ledger: Path) -> None:
    place = f"{ledger}/ledger/rates.py"
    right = "return Money.from_decimal(minor.scaleb(-exponent(money.currency)), target)"
    change = {"path": place, "line": 28, "do": right}
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("view", {"path": place, "start": 28, "end": 28}, "ledger/rates.py 28-28 of"),
        ("listdir", {"path": f"file://{ledger}/tests"}, "test_ledger.py"),
        ("grep", {"pattern": "def convert", "path": str(ledger)}, "ledger/rates.py:"),
        ("trace", {"function": f"{place}:convert"}, "RateTable.convert ledger/rates.py:23-28: 9 calls"),
        ("eval", {}, "2 failed"),
        ("vary", {"path": place, "start": 28, "end": 28}, "ledger/rates.py"),
        ("whatif", {"variants": json.dumps([change])}, "now pass"),
        ("pdb", {"command": f"b {place}:28\nc"}, "> ledger/rates.py:28 in convert (breakpoint 1)"),
    ]

    async def send() -> None:
        async with in_process(ledger) as session:
            for name, given, shown in calls:
                answer = await session.call_tool(name, given)
                assert not answer.isError, (name, text_of(answer))
                assert shown in text_of(answer), name

    run_alone(send)


HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"x","version":"1"}}}\n'
)


def argv(folder: Path) -> list[str]:
    (folder / "a.py").write_text("a = 1\n")
    return [sys.executable, "-m", "gumshoe", "mcp", str(folder)]


@pytest.mark.parametrize("kind", ["file", "pipe", "null device"])
def test_input_that_ends_ends_the_server(tmp_path: Path, kind: str) -> None:
    folder, file = tmp_path / "folder", tmp_path / "input"
    folder.mkdir()
    file.write_bytes(b"junk\n\n\xff\n" * 500 + HELLO)
    with (Path(os.devnull) if kind == "null device" else file).open("rb") as source:
        given: dict[str, Any] = {"input": file.read_bytes()} if kind == "pipe" else {"stdin": source}
        done = subprocess.run(argv(folder), **given, capture_output=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert (b'"id":1,"result"' in done.stdout) == (kind != "null device")


@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, b"gumshoe mcp: interrupted\n"), (signal.SIGTERM, 0, b"")]
)
def test_ctrl_c_is_told_from_a_client_that_ends_its_server(
    tmp_path: Path, number: signal.Signals, code: int, said: bytes
) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(argv(tmp_path), stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert b'"id":1' in server.stdout.readline()
        server.send_signal(number)
        _, errors = server.communicate(timeout=LIMIT_S)
    assert (server.returncode, errors) == (code, said)
