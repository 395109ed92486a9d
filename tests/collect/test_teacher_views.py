"""The teacher reads on where a long view ends before the line that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.data.unseen import unseen
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.episode.tool_output import outputs_of_steps, shown_code
from gumshoe.collect.policies import make_policy
from gumshoe.collect.policy_config import TeacherConfig
from gumshoe.collect.run.play import play_one
from gumshoe.env.diff import make_patch
from gumshoe.records import Limits, Oracle, StopReason, Task, WorkspaceSpec
from support.sandboxes.sandbox_backends import LOCAL

COUNT = 240
MIDDLE = 120
LONG = "  # " + "x" * 90


def long_function(middle: str) -> str:
    """Far more text than an observation may have."""
    lines = [f"    total += {number}{LONG}" for number in range(COUNT)]
    lines[MIDDLE] = middle
    return "\n".join(["def add(total):", *lines, "    return total", ""])


@pytest.mark.parametrize("seed", range(4))
def test_it_reads_on_to_a_line_behind_a_long_view(seed: int, tmp_path: Path) -> None:
    wrong, right = long_function("    total -= 120"), long_function("    total += 120")
    (tmp_path / "long.py").write_text(wrong)
    (tmp_path / "test_long.py").write_text(
        f"from long import add\n\n\ndef test_add():\n    assert add(0) == {sum(range(COUNT))}\n"
    )
    task = Task(
        id="long/middle",
        source="synth",
        problem_statement="test_long.py::test_add fails",
        workspace=WorkspaceSpec(path=str(tmp_path)),
        entrypoint=("python", "-m", "pytest", "-q"),
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
