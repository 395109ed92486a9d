"""A policy as solver, in arms with their own tools, packs and budgets; mini-swe-agent and other programs as solver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from gumshoe.cli import main
from gumshoe.collect.data.store import read_trajectories
from gumshoe.config import validate
from gumshoe.eval.config import EvalConfig
from gumshoe.records import StopReason, Trajectory
from support.eval.explorers import Models, serving, write_tasks
from support.eval.made import write_eval_config
from support.provider_server import Answer, chat, fault, provider

Played = tuple[Path, list[str]]
Capture = pytest.CaptureFixture[str]
TRACEBACK: dict[str, Any] = {"name": "traceback", "policy": {"kind": "traceback"}}
BARE: dict[str, Any] = {"name": "bare", "without_probes": "traceback"}


@pytest.fixture(scope="module")
def models() -> Models:
    places = {f"twice() of customer {number} gives too much.": ("parts.py", 2) for number in range(3)}
    return Models(places, list(places)[:1])


@pytest.fixture(scope="module")
def played(models: Models, tmp_path_factory: pytest.TempPathFactory) -> Generator[Played]:
    """An evaluation whose solver works as an agent, in every arm that there is."""
    folder = tmp_path_factory.mktemp("arms")
    with serving(models) as url:

        def policy(model: str) -> dict[str, Any]:
            return {"kind": "openai", "model": model, "base_url": url}

        path = write_eval_config(
            folder,
            tasks={"source": str(write_tasks(folder / "tasks", 3))},
            arms=[
                {"name": "middling", "policy": policy("middling"), "baseline": True},
                {"name": "mender", "policy": policy("solver"), "agent": {"kind": "rewrite"}},
                {"name": "unproven", "without_probes": "middling"},
            ],
            solver={
                "kind": "policy",
                "policy": policy("solver"),
                "limits": {"steps": 4, "tokens": 400},
                "references": ["solo", "no_pack", "static", "oracle_pack", "debug", "rewrite"],
            },
            limits={"steps": 3, "tokens": 500},
            flaky_runs=2,
            max_flaky=0.4,
            resamples=200,
        )
        assert main(["eval", str(path)]) == 0
        yield folder / "out", ["eval", str(path)]


def summary_of(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_text())


def arm(out: Path, name: str) -> dict[str, Any]:
    return next(one for one in summary_of(out)["arms"] if one["name"] == name)


def episodes(out: Path, name: str) -> list[Trajectory]:
    return list(read_trajectories(out / "solver" / name))


def changed(words: list[str], folder: Path, **changes: Any) -> list[str]:
    """The command of an evaluation with changes to its config, and with its results in `folder`/out."""
    config = yaml.safe_load(Path(words[1]).read_text()) | {"out": str(folder / "out")} | changes
    return ["eval", str(write_eval_config(folder, **config))]


def test_every_arm_is_there_and_the_packs_make_the_difference(played: Played) -> None:
    out, _ = played
    solved = {one["name"]: one["groups"]["all"]["solved"]["value"] for one in summary_of(out)["arms"]}
    helped = {"middling": 0.5, "unproven": 0.5, "static": 1.0, "oracle_pack": 1.0}
    assert solved == {**helped, **dict.fromkeys(("mender", "solo", "no_pack", "debug", "rewrite"), 0.0)}
    pairs = {(one["arm"], one["baseline"]) for one in summary_of(out)["comparisons"] if one["metric"] == "solved"}
    assert {("debug", "rewrite"), ("middling", "no_pack"), ("middling", "solo"), ("unproven", "middling")} <= pairs
    assert ("middling", "mender") not in pairs
    said = {one.messages[1].content for one in episodes(out, "oracle_pack")}
    assert all("Places, best first:\n- parts.py:2-2" in text for text in said)
    assert all("hands this over" not in one.messages[1].content for one in episodes(out, "no_pack"))


def test_arms_differ_in_tools_and_budget_and_in_nothing_else(played: Played) -> None:
    out, _ = played
    tools = {name: {tool.name for tool in episodes(out, name)[0].tools} for name in ("solo", "debug", "rewrite")}
    assert tools["debug"] - tools["rewrite"] == {"pdb"}
    assert tools["solo"] == tools["debug"]
    limits = {
        name: yaml.safe_load((out / "solver" / name / "config.yaml").read_text())["limits"]
        for name in ("debug", "rewrite", "middling", "solo")
    }
    assert limits["debug"] == limits["rewrite"] == limits["middling"]
    assert (limits["debug"]["tokens"], limits["solo"]["tokens"], limits["solo"]["steps"]) == (400, 900, 7)
    seeds = {
        name: sorted((one.task.id, one.provenance.seed) for one in episodes(out, name)) for name in ("debug", "solo")
    }
    assert seeds["debug"] == seeds["solo"]


def test_a_flaky_task_is_listed_and_left_out_of_every_arm(played: Played) -> None:
    out, _ = played
    (flaky,) = summary_of(out)["flaky"]
    assert (flaky["task_id"], flaky["passed"], flaky["runs"]) == ("parts/2", 1, 2)
    assert flaky["why"]
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert {row["task_id"] for row in rows} == {"parts/0", "parts/1"}
    assert summary_of(out)["tasks"]["all"] == 2


def test_too_many_flaky_tasks_stop_the_evaluation_before_anything_is_played(
    tmp_path: Path, played: Played, models: Models, capsys: Capture
) -> None:
    asked = len(models.asked)
    tasks = yaml.safe_load(Path(played[1][1]).read_text())["tasks"]
    assert main(changed(played[1], tmp_path, tasks={**tasks, "ids": ["parts/1", "parts/2"]}, max_flaky=0.1)) == 2
    said = capsys.readouterr().err
    assert "left out: parts/2, fixed by its gold patch in 0 of 2 runs (failing: test_luck.py::test_luck)" in said
    assert "1 of 2 tasks are not fixed by their gold patch in each of 2 runs, more than max_flaky: 0.1 allows" in said
    assert len(models.asked) == asked
    assert not (tmp_path / "out" / "results.jsonl").exists()


def test_what_was_played_is_scored_again_without_asking_anybody(tmp_path: Path, played: Played, models: Models) -> None:
    out, words = played
    before, asked = summary_of(out), len(models.asked)
    assert main(words) == 0
    assert summary_of(out) == before
    tasks = yaml.safe_load(Path(words[1]).read_text())["tasks"]
    elsewhere = changed(
        words,
        tmp_path,
        tasks={**tasks, "ids": ["parts/0", "parts/1"]},
        arms=[{"name": "before", "earlier": "{arms}/middling"}],
        solver=None,
        vars={"arms": str(out / "arms")},
        flaky_runs=0,
    )
    assert main(elsewhere) == 0
    assert len(models.asked) == asked
    found = [arm(*one)["groups"]["all"]["function_acc@1"] for one in ((out, "middling"), (tmp_path / "out", "before"))]
    assert found[0] == found[1]


TEACHER = {"kind": "policy", "policy": {"kind": "teacher"}}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"solver": {"kind": "policy"}}, "needs either a model folder or a policy"),
        ({"solver": {"policy": {"kind": "teacher"}}}, "a solver of kind scripted uses no model"),
        ({"solver": {"references": ["debug", "no_pack"]}}, "remove 'debug' from solver.references"),
        ({"solver": {"kind": "policy", "model": "/nowhere"}}, "there is no model folder /nowhere"),
        ({"solver": {**TEACHER, "pack": "/no.jinja"}}, "the prompt template /no.jinja cannot be read"),
        ({"arms": [{"name": "no_pack", "policy": {"kind": "traceback"}}]}, "an arm cannot be called 'no_pack'"),
        ({"harness": {}}, "harness grades SWE-bench only"),
        ({"arms": [TRACEBACK, {**BARE, "without_probes": "bare"}]}, "an arm above it with episodes (traceback)"),
        ({"arms": [TRACEBACK, {**BARE, "baseline": True}]}, "has no episodes, so it cannot be the baseline"),
        ({"arms": [TRACEBACK, {**BARE, "agent": {"kind": "debug"}}]}, "arm 'bare' runs no episodes: remove its agent"),
        ({"arms": [{"name": "before", "earlier": "/nowhere"}]}, "/nowhere is not a run folder"),
        ({"arms": [{"name": "a", "answers": {"path": "{file}", "format": "places"}}]}, "give -p vars.file=..."),
        ({"arms": [TRACEBACK, BARE], "solver": None}, "has packs for a solver, but there is none"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, played: Played, changes: dict[str, Any], said: str, capsys: Capture
) -> None:
    assert main(changed(played[1], tmp_path, **changes)) == 2
    assert said in capsys.readouterr().err


COMMON: dict[str, Any] = {"kind": "rewrite", "tools": ["view", "rewrite"], "nudges": 2}


@pytest.mark.parametrize(
    ("common", "own", "whole"),
    [
        (COMMON, {"nudges": 5}, {**COMMON, "nudges": 5}),
        (COMMON, {"tools": ["grep"]}, {**COMMON, "tools": ["grep"]}),
        (COMMON, {}, COMMON),
        ({"tools": ["eval", "report"]}, {"nudges": 5}, {"kind": "seeker", "tools": ["eval", "report"], "nudges": 5}),
        (None, {"nudges": 5}, {"kind": "seeker", "tools": None, "nudges": 5}),
        (COMMON, {"kind": "seeker"}, {"kind": "seeker", "tools": None, "nudges": 3}),
        (COMMON, {"kind": "debug", "nudges": 5}, {"kind": "debug", "tools": None, "nudges": 5}),
    ],
)
def test_an_agent_without_a_kind_changes_that_of_the_evaluation(
    common: dict[str, Any] | None, own: dict[str, Any], whole: dict[str, Any]
) -> None:
    given = {
        "out": "x",
        "tasks": {"source": "casebook"},
        "arms": [{"name": "a", "policy": {"kind": "traceback"}, "agent": own}],
        **({} if common is None else {"agent": common}),
    }
    made = validate(EvalConfig, given, origin="test")
    (arm,) = made.arms
    assert arm.agent is not None
    assert arm.agent.model_dump(mode="json", include=set(whole)) == whole
    assert validate(EvalConfig, made.model_dump(mode="json"), origin="test") == made


REPAIR = "sed -i 's/ + 1$//' parts.py && python -m pytest -q"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def bash(command: str) -> Answer:
    return chat("I work.", [("bash", {"command": command})])


def config_of(folder: Path, command: dict[str, Any], references: Sequence[str] = ()) -> Path:
    """An evaluation of one task whose arms differ in the pack that the program is given."""
    return write_eval_config(
        folder,
        tasks={"source": str(write_tasks(folder, 2)), "ids": ["parts/0"]},
        arms=[{"name": "suspect", "policy": {"kind": "suspect"}}],
        solver={"kind": "command", "command": command, "references": list(references)},
        sandbox={"kind": "bubblewrap"},
        workers=1,
    )


def evaluate_with_key(config: Path) -> None:
    """Runs it with a key in the environment."""
    argv = [sys.executable, "-m", "gumshoe", "eval", str(config)]
    environment = {**os.environ, "OPENAI_API_KEY": "sesame"}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    return {row["arm"]: row for row in map(json.loads, lines)}


@pytest.mark.needs("bubblewrap")
def test_mini_swe_agent_mends_a_bug_with_the_pack_and_its_record_is_read(tmp_path: Path, root: Path) -> None:
    with provider(bash(REPAIR), bash(DONE)) as model:
        bundled = yaml.safe_load((root / "configs/eval/mini_swe_agent.yaml").read_text())["solver"]["command"]
        config = config_of(tmp_path, {**bundled, "endpoint": model.url})
        evaluate_with_key(config)
        asked = len(model.requests)
        evaluate_with_key(config)
    assert len(model.requests) == asked == 2
    assert {headers["authorization"] for headers in model.headers} == {"Bearer sesame"}
    assert set(model.paths) == {"/v1/models", "/v1/chat/completions"}
    opening = json.dumps(model.requests[0]["messages"])
    assert "Somebody has looked for the cause" in opening
    assert "1 passed" in json.dumps(model.requests[1]["messages"])
    found = rows(tmp_path)["suspect"]
    assert found["scores"]["solved"] == 1.0
    assert "-    return n * 2 + 1" in found["patch"]
    (trajectory,) = read_trajectories(tmp_path / "out" / "solver" / "suspect")
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


@pytest.mark.needs("bubblewrap")
def test_a_program_reaches_its_endpoint_and_nothing_else(tmp_path: Path) -> None:
    with provider(chat("hello")) as model:
        port = model.url.rpartition(":")[2].partition("/")[0]
        argv = ["python", "-c", PROBE, "{base_url}", "{problem_file}", "{pack_file}", port]
        config = config_of(tmp_path, {"argv": argv, "endpoint": model.url}, ["no_pack"])
        evaluate_with_key(config)
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


@pytest.mark.needs("bubblewrap")
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
    assert not (tmp_path / "out" / "solver" / "suspect" / "attempts.jsonl").exists()


@pytest.mark.needs("bubblewrap")
def test_a_program_without_an_endpoint_must_be_there_and_may_fail(tmp_path: Path, capsys: Capture) -> None:
    config = config_of(tmp_path, {"argv": ["no-such-agent"]})
    assert main(["eval", str(config)]) == 1
    assert "no-such-agent ended with exit code 127" in capsys.readouterr().err
    give_up = "import sys; open('parts.py', 'a').write('# tried'); sys.exit(3)"
    assert main(["eval", str(config), "-p", f"solver.command.argv={json.dumps(['python', '-c', give_up])}"]) == 0
    row = rows(tmp_path)["suspect"]
    assert "+# tried" in row["patch"]
    assert row["scores"]["solved"] == 0


@pytest.mark.needs("bubblewrap")
def test_a_program_that_takes_too_long_is_killed_and_what_it_changed_counts(tmp_path: Path) -> None:
    slow = "import subprocess, time; subprocess.run(['sed', '-i', 's/ + 1$//', 'parts.py']); time.sleep(600)"
    config = config_of(tmp_path, {"argv": ["python", "-c", slow], "timeout_s": 4})
    assert main(["eval", str(config)]) == 0
    assert rows(tmp_path)["suspect"]["scores"]["solved"] == 1.0
