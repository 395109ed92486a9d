"""What the soak plays, and with whom: a small project with as many bugs as are wanted, and a provider on loopback.

The provider's model plays scripts, some of them hostile, and now and then answers junk. Its answers depend on the
conversation alone, so that a run that is killed and resumed gets the same answers.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from gumshoe.env.diff import make_patch
from gumshoe.env.tasks.taskset import write_taskset
from gumshoe.records import Oracle, Task, WorkspaceSpec

CLEAN = "def total(items):\n    return sum(items)\n"
TESTS = """import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([20, 30]), 50)
"""


def make_tasks(folder: Path, count: int) -> Path:
    """A set of that many small tasks, each with a bug of its own."""
    repo = folder / "repo"
    repo.mkdir(parents=True, exist_ok=True)
    (repo / "shop.py").write_text(CLEAN, encoding="utf-8")
    (repo / "test_shop.py").write_text(TESTS, encoding="utf-8")
    pairs: list[tuple[Task, Oracle]] = []
    for number in range(count):
        buggy = CLEAN.replace("sum(items)", f"sum(items) + {number + 1}")
        task = Task(
            id=f"soak/{number:04d}",
            source="synth",
            problem_statement=f"The total is {number + 1} too large.\n",
            workspace=WorkspaceSpec(path=str(repo), overlay={"shop.py": buggy}),
            entrypoint=("python", "-m", "unittest", "-v", "test_shop"),
            readonly=("test_shop.py",),
            tags={"project": f"soak{number % 20}", "split": "train"},
        )
        patch = make_patch({"shop.py": (buggy.encode(), CLEAN.encode())})
        oracle = Oracle(task_id=task.id, gold_patch=patch, fail_to_pass=("test_shop.TotalTest.test_total",))
        pairs.append((task, oracle))
    write_taskset(folder, pairs)
    return folder


FIX = {"path": "shop.py", "code": "    return sum(items)", "start": 2}
Turn = tuple[str, str, dict[str, Any]]

SOUND: tuple[Turn, ...] = (
    ("[verify 0.9] I run the tests.", "eval", {}),
    ("[seek 0.8] I read the code.", "view", {"path": "shop.py"}),
    ("[seek 0.8] Who calls it?", "grep", {"pattern": "total"}),
    ("[edit 0.9] The sum is enough.", "rewrite", FIX),
    ("[verify 0.9] I run the tests again.", "eval", {}),
    ("[submit 1.0] They pass.", "submit", {}),
)


def _attack(*commands: str, code: str | None = None) -> tuple[Turn, ...]:
    """Shell commands, or code in place of the function, then the tests and a submission."""
    turns: list[Turn] = [("[seek 0.5] I try something.", "bash", {"command": command}) for command in commands]
    if code is not None:
        turns.append(
            ("[edit 0.5] I try something.", "rewrite", {"path": "shop.py", "code": code, "start": 1, "end": 2})
        )
    return (*turns, ("[verify 0.5] And now?", "eval", {}), ("[submit 1.0] Done.", "submit", {}))


ATTACKS: tuple[tuple[Turn, ...], ...] = (
    _attack("rm -rf ./* .[!.]*; echo > tests; chmod 000 ."),
    _attack("(while sleep 0.05; do echo > test_shop.py; done) >/dev/null 2>&1 &"),
    _attack('for fd in /proc/self/fd/*; do echo \'{"id": 1, "interim": 1}\' >$fd; done 2>/dev/null; kill -9 $PPID'),
    _attack("head -c 20000000 /dev/zero | tr '\\0' x >big.txt; yes | head -c 5000000"),
    _attack(code="import os\nos._exit(0)\n"),
    _attack(code="import atexit, os\natexit.register(os._exit, 0)\n\ndef total(items):\n    return 0\n"),
    _attack("printf 'def pytest_runtest_makereport(item, call):\\n    call.excinfo = None\\n' >conftest.py"),
)
JUNK: tuple[bytes, ...] = (
    b"",
    b"null",
    b'"just a text"',
    b"<html>maintenance</html>",
    b'{"choices": null}',
    b'{"choices": [{"message": null}]}',
    b'{"choices": [{"message": {"content": 5}}]}',
    b'{"choices": [{"message": {"tool_calls": [{"function": null}]}}]}',
    b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": -1}}',
    b"[" * 100_000,
)


def is_hostile(number: int, share: float) -> bool:
    """Whether the episode of this task plays an attack: the same for the same number."""
    return random.Random(f"hostile {number}").random() < share


@dataclass
class SoakModel:
    """How the model behaves, and how often it answered junk.

    Args:
        junk: share of the answers that are junk, from 0 to 1.
        hostile: share of the episodes that are hostile, from 0 to 1.
    """

    junk: float
    hostile: float
    junk_answers: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def answer(self, request: dict[str, Any]) -> bytes:
        """The body of the answer to a request of the chat API."""
        with self._guard:
            if self._random.random() < self.junk:
                self.junk_answers += 1
                return self._random.choice(JUNK)
        turns = self._script(request["messages"])
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        return json.dumps(_completion(request["model"], turn, turns[min(turn, len(turns) - 1)])).encode()

    def take_junk_count(self) -> int:
        """How many answers were junk since this was last called."""
        with self._guard:
            count, self.junk_answers = self.junk_answers, 0
        return count

    def _script(self, messages: Sequence[dict[str, Any]]) -> tuple[Turn, ...]:
        problem = next(str(message["content"]) for message in messages if message["role"] == "user")
        found = re.search(r"The total is (\d+) too large", problem)
        number = int(found[1]) - 1 if found else 0
        return ATTACKS[number % len(ATTACKS)] if is_hostile(number, self.hostile) else SOUND


def _completion(model: str, turn: int, said: Turn) -> dict[str, Any]:
    text, name, arguments = said
    call = {"id": f"c{turn}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": text, "tool_calls": [call]}
    return {
        "id": "soak",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


@contextmanager
def serve_model(model: SoakModel, port: int = 0) -> Generator[int]:
    """Serves the model on loopback and gives the port; 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = model.answer(request)
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            """A killed run leaves broken connections behind."""

    server = Server(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
