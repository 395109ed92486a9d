"""A command-line agent as solver: mini-swe-agent itself, in a sandbox whose only way out is its endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.records import StopReason
from support.eval.solver_tasks import write_tasks
from support.provider_server import Answer, chat, fault, provider

pytestmark = pytest.mark.needs("bubblewrap")


Capture = pytest.CaptureFixture[str]
REPAIR = "sed -i 's/ + 1$//' parts.py && python -m pytest -q"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def bash(command: str) -> Answer:
    return chat("I work.", [("bash", {"command": command})])


def config_of(folder: Path, command: dict[str, Any], references: Sequence[str] = ()) -> Path:
    """An evaluation of one task whose arms differ in the pack that the program is given."""
    data = {
        "out": str(folder / "eval"),
        "tasks": {"source": str(write_tasks(folder, 2)), "ids": ["parts/0"]},
        "arms": [{"name": "suspect", "policy": {"kind": "suspect"}}],
        "solver": {"kind": "command", "command": command, "references": list(references)},
        "sandbox": {"kind": "bubblewrap"},
        "workers": 1,
    }
    path = folder / "eval.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


def evaluate(config: Path) -> None:
    """Runs it with a key in the environment."""
    argv = [sys.executable, "-m", "gumshoe", "eval", str(config)]
    environment = {**os.environ, "OPENAI_API_KEY": "sesame"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "eval" / "results.jsonl").read_text().splitlines()
    return {row["arm"]: row for row in map(json.loads, lines)}


def test_mini_swe_agent_mends_a_bug_with_the_pack_and_its_record_is_read(tmp_path: Path, root: Path) -> None:
    with provider(bash(REPAIR), bash(DONE)) as model:
        bundled = yaml.safe_load((root / "configs/eval/mini_swe_agent.yaml").read_text())["solver"]["command"]
        config = config_of(tmp_path, {**bundled, "endpoint": model.url})
        evaluate(config)
        asked = len(model.requests)
        evaluate(config)
    assert len(model.requests) == asked == 2
    assert {headers["authorization"] for headers in model.headers} == {"Bearer sesame"}
    assert set(model.paths) == {"/v1/models", "/v1/chat/completions"}
    opening = json.dumps(model.requests[0]["messages"])
    assert "Somebody has looked for the cause" in opening
    assert "1 passed" in json.dumps(model.requests[1]["messages"])
    found = rows(tmp_path)["suspect"]
    assert found["scores"]["solved"] == 1.0
    assert "-    return n * 2 + 1" in found["patch"]
    (trajectory,) = read_trajectories(tmp_path / "eval" / "solver" / "suspect")
    assert trajectory.stop is StopReason.SUBMITTED
    assert [call.name for step in trajectory.steps for call in step.tool_calls] == ["bash", "bash"]
    assert trajectory.patch == found["patch"]
    assert trajectory.usage.prompt_tokens == 200
    assert "sesame" not in trajectory.model_dump_json()


PROBE = """
import json, os, socket, sys, urllib.error, urllib.request

def status(url, data=None):
    try:
        return urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return "refused"

base, problem, pack = sys.argv[1:4]
seen = {
    "problem": open(problem).read(),
    "pack": json.load(open(pack)),
    "models": status(base + "/models"),
    "outside": [status(base + path) for path in ("/../admin", "/@evil.example", "/x?y=http://z")],
    "large": status(base + "/chat/completions", b"x" * (6 << 20)),
    "key": [value for value in os.environ.values() if "sesame" in value],
}
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[4])), timeout=5)
    seen["host"] = True
except OSError:
    seen["host"] = False
open("seen.json", "w").write(json.dumps(seen))
"""


def test_a_program_reaches_its_endpoint_and_nothing_else(tmp_path: Path) -> None:
    with provider(chat("hello")) as model:
        port = model.url.rpartition(":")[2].partition("/")[0]
        argv = ["python", "-c", PROBE, "{base_url}", "{problem_file}", "{pack_file}", port]
        config = config_of(tmp_path, {"argv": argv, "endpoint": model.url}, ["no_pack"])
        evaluate(config)
    by_arm = {name: seen_in(row["patch"]) for name, row in rows(tmp_path).items()}
    assert by_arm["suspect"]["pack"]["locations"]
    assert by_arm["no_pack"]["pack"] is None
    for seen in by_arm.values():
        assert seen["models"] == 200
        assert seen["outside"] == [403, 403, 403]
        assert seen["large"] in (413, "refused")
        assert not seen["host"]
        assert seen["key"] == []
    assert set(model.paths) == {"/v1/models"}


def seen_in(patch: str) -> dict[str, Any]:
    (line,) = (line for line in patch.splitlines() if line.startswith("+{"))
    return json.loads(line[1:])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["no-such-agent"], "no-such-agent ended with exit code 127 before it queried a model"),
        (["python", "-c", "raise SystemExit('bad option')"], "before it queried a model: bad option"),
        (
            ["python", "-c", "import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + '/x')", "{base_url}"],
            "its endpoint did not respond: status 401",
        ),
    ],
)
def test_what_does_not_work_is_a_failure_and_no_result(
    tmp_path: Path, argv: list[str], message: str, capsys: Capture
) -> None:
    with provider(fault(401, "no key")) as model:
        config = config_of(tmp_path, {"argv": argv, "endpoint": model.url})
        assert main(["eval", str(config)]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "eval" / "solver" / "suspect" / "attempts.jsonl").exists()


def test_a_program_without_an_endpoint_must_be_there_and_may_fail(tmp_path: Path, capsys: Capture) -> None:
    config = config_of(tmp_path, {"argv": ["no-such-agent"]})
    assert main(["eval", str(config)]) == 1
    assert "no-such-agent ended with exit code 127" in capsys.readouterr().err
    give_up = "import sys; open('parts.py', 'a').write('# tried'); sys.exit(3)"
    assert main(["eval", str(config), "-p", f"solver.command.argv={json.dumps(['python', '-c', give_up])}"]) == 0
    row = rows(tmp_path)["suspect"]
    assert "+# tried" in row["patch"]
    assert row["scores"]["solved"] == 0


def test_a_program_that_takes_too_long_is_killed_and_what_it_changed_counts(tmp_path: Path) -> None:
    slow = "import subprocess, time; subprocess.run(['sed', '-i', 's/ + 1$//', 'parts.py']); time.sleep(600)"
    config = config_of(tmp_path, {"argv": ["python", "-c", slow], "timeout_s": 4})
    assert main(["eval", str(config)]) == 0
    assert rows(tmp_path)["suspect"]["scores"]["solved"] == 1.0
