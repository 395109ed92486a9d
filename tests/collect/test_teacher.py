"""The scripted teacher: what it reads before it edits, and how it makes the gold change."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.collect.config import AgentConfig, TeacherConfig
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.spec import EpisodeSpec, make_agent
from gumshoe.collect.episode.tool_output import outputs_of_steps, shown_code
from gumshoe.collect.policies import make_policy
from gumshoe.collect.policies.gold import GoldEdit, read_gold
from gumshoe.collect.run.play import play_one
from gumshoe.env.diff import make_patch
from gumshoe.errors import TaskError
from gumshoe.records import Limits, Oracle, StopReason
from support.folder_tasks import folder_task
from support.sandboxes.sandbox_backends import LOCAL

COUNT = 240
MIDDLE = 120
LONG = "  # " + "x" * 90


def long_function(middle: str) -> str:
    """Far more text than an observation may have."""
    lines = [f"    total += {number}{LONG}" for number in range(COUNT)]
    lines[MIDDLE] = middle
    return "\n".join(["def add(total):", *lines, "    return total", ""])


@pytest.mark.parametrize("seed", range(2))
def test_it_reads_on_to_a_line_behind_a_long_view(seed: int, tmp_path: Path) -> None:
    wrong, right = long_function("    total -= 120"), long_function("    total += 120")
    test = f"from long import add\n\n\ndef test_add():\n    assert add(0) == {sum(range(COUNT))}\n"
    task = folder_task(
        tmp_path,
        {"long.py": wrong, "test_long.py": test},
        problem_statement="test_long.py::test_add fails",
        limits=Limits(command_timeout_s=300),
    )
    oracle = Oracle(task_id=task.id, gold_patch=make_patch({"long.py": (wrong.encode(), right.encode())}))
    policy = make_policy(TeacherConfig(explore=0.0), task, oracle, seed)
    agent = make_agent(AgentConfig(kind="seeker"))
    found = play_one(EpisodeSpec(task), agent, policy, sandbox=LOCAL)
    views = [output for output in outputs_of_steps(found.steps) if output.tool == "view"]
    line = MIDDLE + 2
    assert not any(view.observation.truncated for view in views)
    assert [line in shown_code(view) for view in views] == [False, True]
    assert views[1].data["start"] == views[0].data["end"] + 1
    assert found.stop is StopReason.REPORTED
    assert found.context_pack is not None
    assert found.context_pack.locations[0].start <= line <= found.context_pack.locations[0].end
    assert unseen(found) == []


def patch(before: str | None, after: str | None) -> Oracle:
    texts = tuple(text.encode() if text is not None else None for text in (before, after))
    return Oracle(task_id="t", gold_patch=make_patch({"a.py": (texts[0], texts[1])}))


LINES = "".join(f"line {number}\n" for number in range(1, 21))


@pytest.mark.parametrize(
    "after",
    [
        LINES.replace("line 3\n", "new\n"),
        LINES.replace("line 3\n", ""),
        LINES.replace("line 3\n", "line 3\nnew\nnewer\n"),
        LINES.replace("line 3\n", "a\nb\n").replace("line 5\n", "").replace("line 18\n", "z\nline 18\n"),
        "top\n" + LINES,
        LINES + "bottom\n",
        LINES.replace("line 1\n", ""),
    ],
)
def test_changes_make_exactly_the_gold_patch(after: str) -> None:
    lines = LINES.splitlines(keepends=True)
    for change in read_gold(patch(LINES, after)).changes:
        assert change.start is not None
        assert change.end is not None
        lines[change.start - 1 : change.end] = change.code.splitlines(keepends=True)
    assert "".join(lines) == after


def test_a_new_file_is_one_change() -> None:
    assert read_gold(patch(None, "x = 1\n")).changes == (GoldEdit("a.py", None, None, "x = 1\n"),)


def test_an_import_is_no_cause_unless_nothing_else_is_changed() -> None:
    before = "import os\n\n\ndef here():\n    return os.curdir\n"
    imported = before.replace("import os\n", "import os\nimport sys\n")
    both = read_gold(patch(before, imported.replace("curdir", "getcwd()")))
    assert both.lines == {"a.py": {1, 5}}
    assert (both.cause, both.places) == ({"a.py": {5}}, [("a.py", 5)])
    assert read_gold(patch(before, imported)).cause == {"a.py": {1}}


def test_patches_that_edits_cannot_make_are_refused() -> None:
    with pytest.raises(TaskError, match="removes"):
        read_gold(patch("x\n", None))
    with pytest.raises(TaskError, match="empty gold patch"):
        read_gold(Oracle(task_id="t", gold_patch=""))
