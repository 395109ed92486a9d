"""What others have made is read within bounds, whatever is in it: repositories, patches, and figures.

No pipe is waited for, no sparse file or patch fills the memory, and no number is too large.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.policies.registry import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.env.bugs.packages.sources import copy_tree
from gumshoe.env.bugs.projects import copy_into_taskset, find_projects, sources_of
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.projects import digest_of
from gumshoe.errors import TaskError
from gumshoe.eval.view.library import open_library
from gumshoe.eval.view.sources import GoldPatches
from gumshoe.records import Completion, Limits, StopReason, Task, ToolCall
from support.sandboxes.sandbox_backends import CHEAPEST


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "calc"
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "test_calc.py").write_text("from calc import add\n\ndef test_add():\n    assert add(1, 1) == 2\n")
    return folder


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.timeout(20)
def test_a_sparse_file_of_8_gb_in_a_repository_is_refused_at_once(project: Path) -> None:
    sparse(project / "data.bin", 8 << 30)
    with pytest.raises(TaskError, match=r"more than 2048 MiB with data\.bin"):
        load_tasks("local", path=str(project))


@pytest.mark.timeout(20)
def test_many_files_count_together(project: Path) -> None:
    for number in range(4):
        sparse(project / f"{number}.bin", 7 << 20)
    with pytest.raises(TaskError, match="more than 10 MiB"):
        digest_of(project, limit=10 << 20)


@pytest.mark.timeout(20)
def test_a_pipe_is_no_part_of_a_repository(project: Path) -> None:
    before = digest_of(project)
    os.mkfifo(project / "pipe")
    os.mkfifo(project / "pipe.py")
    assert digest_of(project) == before


@pytest.mark.timeout(20)
def test_a_project_with_a_pipe_is_copied_without_it(project: Path, tmp_path: Path) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "link.py").symlink_to("pipe.py")
    (found,) = find_projects([str(project)])
    assert set(sources_of(found, ["test_*"])) == {"calc.py"}
    copy_into_taskset(found, tmp_path / "set")
    names = sorted(path.name for path in (tmp_path / "set" / "projects" / "calc").iterdir())
    assert names == ["calc.py", "link.py", "test_calc.py"]


def test_links_in_a_circle_and_names_that_no_task_can_hold_get_no_bugs(project: Path, tmp_path: Path) -> None:
    (project / "self.py").symlink_to("self.py")
    (project / os.fsdecode(b"caf\xe9.py")).write_text("x = 1\n")
    (found,) = find_projects([str(project)])
    assert set(sources_of(found, ["test_*"])) == {"calc.py"}
    copy_tree(project, tmp_path / "copy")
    names = {path.name for path in (tmp_path / "copy").iterdir()}
    assert names == {os.fsdecode(b"caf\xe9.py"), "calc.py", "test_calc.py"}


def test_a_folder_that_no_task_can_name_is_refused(project: Path) -> None:
    renamed = project.rename(project.with_name(os.fsdecode(b"caf\xe9")))
    with pytest.raises(TaskError, match="the name is not utf-8 text: rename the folder"):
        load_tasks("local", path=str(renamed))
    with pytest.raises(TaskError, match="the name is not utf-8 text: rename the folder"):
        find_projects([str(renamed)])


@pytest.mark.timeout(20)
def test_a_source_file_that_is_too_large_is_named(project: Path) -> None:
    sparse(project / "huge.py", 8 << 30)
    (found,) = find_projects([str(project)])
    with pytest.raises(TaskError, match=r"project calc: .*huge\.py .*larger than"):
        sources_of(found, [])


def test_a_digest_tells_contents_names_modes_and_links_apart(project: Path) -> None:
    seen = {digest_of(project)}
    (project / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    seen.add(digest_of(project))
    (project / "calc.py").chmod(0o755)
    seen.add(digest_of(project))
    (project / "calc.py").rename(project / "sums.py")
    seen.add(digest_of(project))
    (project / "link").symlink_to("sums.py")
    seen.add(digest_of(project))
    (project / "empty.txt").touch()
    seen.add(digest_of(project))
    assert len(seen) == 6


MEMORY_MB = 512
"""What a patch may cost on top of an interpreter that holds its text."""
SHAPES = [
    ("BINARY + block(zeros(600 << 20), 600 << 20)", "too large"),
    ("BINARY + block(zeros(600 << 20), 1000)", "damaged"),
    ("BINARY + block(zeros(600 << 20), 0)", "damaged"),
    ("BINARY + block(zeros(60 << 20), 60 << 20)", "read"),
    ("BINARY + block(zeros(40 << 20), 40 << 20) + block(zeros(40 << 20), 40 << 20, 'delta')", "too large"),
    ("(BINARY + block(zeros(1 << 20), 1 << 20)) * 100", "too large"),
    ("BINARY + f'literal {10 ** 30}\\n\\n'", "without its full content"),
    ("BINARY + block(b'', 9) * 200_000", "damaged"),
    (
        "HEADER + 'Binary files a/f and b/f differ\\n' * 200 + BINARY + block(zeros(9 << 20), 9 << 20)",
        "without its",
    ),
    (
        "'--- a/f\\n+++ b/f\\nBinary files a/f and b/f differ\\n' * 9999 + block(zeros(9 << 20), 9 << 20)",
        "without its",
    ),
    ("NEW + '@@ -0,0 +1,6000000 @@\\n' + '+x\\n' * 6_000_000", "too large"),
    ("NEW + f'@@ -0,0 +1,{MOST_LINES - 9} @@\\n' + '+x\\n' * (MOST_LINES - 9)", "read"),
    ("NEW + '@@ -0,0 +1 @@\\n+x\\n' * (MOST_LINES // 2 - 9)", "read|apply"),
    ("''.join(f'diff --git a/{n} b/{n}\\nold mode 100644\\nnew mode 100755\\n' for n in range(160_000))", "apply"),
    ("NEW + '@@ -0,0 +1 @@\\n+' + 'x' * (60 << 20) + '\\n'", "read"),
    ("NEW + '@@ -0,0 +1 @@\\n+' + '\\U0001f600' * (20 << 20) + '\\n'", "too large"),
    ("'x\\n' * 6_000_000", "too large"),
]
"""Patches, as Python that makes them, and words of which one is in what becomes of them."""
CHILD = """
import base64, functools, json, os, resource, sys, zlib
from pathlib import Path
from gumshoe.env.diff import apply_patch, drop_files, parse_patch
from gumshoe.env.diff.parse import LARGEST_PATCH, MOST_LINES
from gumshoe.errors import TaskError

HEADER = "diff --git a/f b/f\\nindex 1..2\\n"
BINARY = HEADER + "GIT binary patch\\n"
NEW = HEADER + "--- /dev/null\\n+++ b/f\\n"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

def block(packed, size, kind="literal"):
    chunks = (packed[start:start + 52] for start in range(0, len(packed), 52))
    lines = "".join(LETTERS[len(chunk) - 1] + base64.b85encode(chunk, pad=True).decode() + "\\n" for chunk in chunks)
    return f"{kind} {size}\\n{lines}\\n"

@functools.cache
def zeros(size):
    packer = zlib.compressobj(1)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)), packer.flush()])

def read_within_limit(patch):
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = in_use + (MEMORY_MB << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        apply_patch({"f": ""}, patch)
        drop_files(patch, ["f"])
        return "read"
    except TaskError as error:
        return str(error)

for shape in json.load(sys.stdin):
    patch = eval(shape)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            print(json.dumps(read_within_limit(patch)[:300]), flush=True)
        finally:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        print(json.dumps(f"killed: {status}"))
"""


def test_a_patch_is_read_or_refused_within_the_limit() -> None:
    code = CHILD.replace("MEMORY_MB", str(MEMORY_MB))
    asked = json.dumps([shape for shape, _ in SHAPES])
    done = subprocess.run([sys.executable, "-c", code], input=asked, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert len(answers) == len(SHAPES)
    for (shape, outcome), answer in zip(SHAPES, answers, strict=True):
        assert any(word in answer for word in outcome.split("|")), (shape, answer)


NUMBERS = [2**63, 2**53, -(2**63), 10**299, 10**400, 1e308, float("inf"), -5, True, "7"]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:12])
def test_the_viewer_takes_any_usage(number: object, tmp_path: Path) -> None:
    """A line or journal with a number that a record refuses is left out; what is shown is valid JSON."""
    usage = {"prompt_tokens": number, "completion_tokens": number, "cost_usd": number}
    line = {
        "id": "a",
        "task": {"id": "t", "hash": "", "source": "s", "regime": "debug"},
        "policy": {"kind": "replay"},
        "tools": [],
        "messages": [],
        "steps": [],
        "stop": "unknown",
        "usage": usage,
        "provenance": {"gumshoe": "", "python": "", "sandbox": ""},
    }
    (tmp_path / "trajectories.jsonl").write_text(f"{json.dumps(line)}\n")
    (tmp_path / "journal").mkdir()
    entries = [{"episode": {"id": "a#0.1"}}, {"completion": {"text": "", "usage": usage}}]
    (tmp_path / "journal" / "a.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    with open_library([tmp_path], GoldPatches()) as library:
        library.catalog.refresh()
        answer = library.rows("", 0)
        (source,) = library.overview()["sources"]
    json.dumps(answer, allow_nan=False)
    assert len(answer["live"]) == len(answer["rows"]) == (source["problem"] is None)


@pytest.mark.needs("bubblewrap")
def test_calls_in_parallel_are_one_turn(small_task: Task) -> None:
    views = tuple(ToolCall(id=str(n), name="view", arguments={"path": "app.py"}) for n in range(5))
    turns = [Completion(text="", tool_calls=views), Completion(text="", tool_calls=(ToolCall(id="s", name="submit"),))]
    task = small_task.model_copy(update={"limits": Limits(steps=3)})
    found = play_one(
        EpisodeSpec(task, None, 0, 1),
        make_agent(AgentConfig(kind="debug")),
        ScriptedPolicy(turns, trusted=False),
        sandbox=CHEAPEST,
    )
    assert found.stop is StopReason.SUBMITTED
    assert [len(step.observations) for step in found.steps] == [5, 1]
