"""Runs as a dataset: every view, its splits, its card and what is left out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml

from gumshoe.collect.commands.collect import collect
from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.export import export_runs
from gumshoe.collect.data.export.rows import (
    COLUMNS,
    DECISION_COLUMNS,
    Dropped,
    SeekerView,
    agent_decision_rows,
    agent_row,
)
from gumshoe.collect.data.store import RunFolder, read_trajectories
from gumshoe.collect.packs import is_quoted
from gumshoe.errors import DatasetError
from gumshoe.records import Completion, ContextPack, Score, ToolCall, Trajectory
from gumshoe.storage import write_jsonl
from gumshoe.text import escape_json
from support.collect.export_episodes import NASTY, episode

Make = Callable[..., CollectConfig]


def load(folder: Path, view: str) -> dict[str, list[dict[str, Any]]]:
    """The rows as `datasets` alone reads them; it keeps its copies beside the folder."""
    loaded: Any = datasets.load_dataset(str(folder), view, cache_dir=str(folder.with_name("cache")))
    return {str(split): list(rows) for split, rows in loaded.items()}


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def test_every_byte_comes_back_from_bare_datasets(tmp_path: Path, config: Make) -> None:
    episodes = [episode(f"e{number}", f"p{number % 4}", resolved=number % 2 == 0) for number in range(70)]
    with RunFolder(tmp_path / "run", config()) as folder:
        for one in episodes:
            folder.add(one)
    result = export_runs([tmp_path / "run"], tmp_path / "out", views=["agent"], unresolved=True)
    loaded = load(tmp_path / "out", "agent")
    assert {split: len(rows) for split, rows in loaded.items()} == result.rows["agent"]
    expected = {one.id: agent_row(one) for one in episodes}
    found = {row["id"]: row for rows in loaded.values() for row in rows}
    assert {name: canonical(row) for name, row in found.items()} == {
        name: canonical(row) for name, row in expected.items()
    }
    first = found["e0"]["messages"][2]
    assert first["tool_calls"][0]["function"]["arguments"] == escape_json(NASTY, tags=True)
    assert first["tool_calls"][1]["function"]["arguments"] == {"only": 1}
    assert list(found["e0"]) == list(COLUMNS)


def test_the_tokens_of_a_turn_go_with_its_message() -> None:
    one = episode("e0", "p0")
    (entry,) = agent_row(one)["sampled"]
    assert entry == {"message": 5, "token_ids": [7, 8], "logprobs": [-0.5, -0.25]}
    first, second = agent_decision_rows(one)
    assert (first["sampled"], second["sampled"]) == ([], [entry])
    assert [*second["prompt"], *second["completion"]][entry["message"]]["content"] == "hm"


def test_splits_are_by_project(tmp_path: Path, config: Make) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        for number in range(40):
            folder.add(episode(f"e{number}", f"p{number % 10}"))
        folder.add(episode("h", "elsewhere", split="heldout_projects"))
        folder.add(episode("b", "p1", split="heldout_bugs"))
    result = export_runs([tmp_path / "run"], tmp_path / "out", views=["agent"], test_share=0.2)
    assert result.rows["agent"] == {"train": 32, "test": 9}
    assert result.dropped["agent"] == {"held-out bug": 1}
    kept = export_runs([tmp_path / "run"], tmp_path / "out", views=["agent"], test_share=0, held_out_bugs=True)
    assert kept.rows["agent"] == {"train": 41, "test": 1}


def test_the_seeker_view_of_a_debugging_episode_is_what_a_seeker_would_be_served(tmp_path: Path, config: Make) -> None:
    debug, seeker = config(2), config(2, out=str(tmp_path / "seek"), agent={"kind": "seeker"})
    for run in (debug, seeker):
        assert collect(run).finished == 2
    assert export_runs([Path(debug.out)], tmp_path / "a").dropped == {"agent": {}, "seeker": {}}
    export_runs([Path(seeker.out)], tmp_path / "b")
    derived = {row["task_id"]: row for rows in load(tmp_path / "a", "seeker").values() for row in rows}
    played = {row["task_id"]: row for rows in load(tmp_path / "b", "seeker").values() for row in rows}
    assert len(derived) == len(played) == 2
    for task, row in derived.items():
        assert row["tools"] == played[task]["tools"]
        assert row["messages"][:2] == played[task]["messages"][:2]
        assert [message["role"] for message in row["messages"]] == [
            message["role"] for message in played[task]["messages"]
        ]
        calls = [message["tool_calls"][0]["function"]["name"] for message in row["messages"] if "tool_calls" in message]
        assert (calls[0], calls[-1]) == ("eval", "report")
        assert {"view", "pdb"} < set(calls)
        for finding in played[task]["context_pack"]["findings"]:
            assert finding.pop("check")["status"] == "confirmed"
        for finding in row["context_pack"]["findings"]:
            assert finding.pop("check") is None
        assert row["context_pack"] == played[task]["context_pack"]
        pack = ContextPack.model_validate(row["context_pack"])
        assert all(is_quoted(finding, _shown(row["messages"])) for finding in pack.findings)
        assert row["messages"][-1]["content"].startswith("[report] ")
        assert row["messages"][-1]["tool_calls"][0]["function"]["arguments"]["hypothesis"] == pack.hypothesis
        assert 7 in pack.locations[0].lines


def _shown(messages: list[dict[str, Any]]) -> dict[int, str]:
    """What the tool messages of a row show, by the number of the turn before them."""
    texts: dict[int, str] = {}
    turn = -1
    for message in messages:
        turn += message["role"] == "assistant"
        if message["role"] == "tool":
            texts[turn] = message["content"].removeprefix(f"[step {turn}] ")
    return texts


def debugged(tmp_path: Path, config: Make) -> Trajectory:
    made = config(1)
    collect(made)
    (found,) = read_trajectories(Path(made.out))
    return found


def test_what_gives_no_seeker_sample_says_why(tmp_path: Path, config: Make) -> None:
    whole = debugged(tmp_path, config)
    lost = whole.model_copy(update={"scores": (Score(name="resolved", value=0.0),)})
    edit = next(step.index for step in whole.steps if step.tool_calls[0].name == "rewrite")
    blind = whole.model_copy(update={"steps": whole.steps[edit:]})
    bash = ToolCall(id="c", name="bash", arguments={})
    shell = whole.steps[0].model_copy(update={"completion": Completion(text="", tool_calls=(bash,))})
    silent = whole.steps[0].model_copy(update={"completion": Completion(text="")})
    unseen = whole.model_copy(update={"patch": whole.patch.replace("shop.py", "shopping.py")})
    seeker = whole.policy.model_copy(update={"agent": "seeker"})
    reasons = {
        "not resolved": lost,
        "no information-seeking step before the first edit": blind,
        "a tool that the seeker lacks": whole.model_copy(update={"steps": (shell, *whole.steps[1:])}),
        "a turn without a call before the first edit": whole.model_copy(update={"steps": (silent, *whole.steps[1:])}),
        "the edited code was never seen": unseen,
        "no report": whole.model_copy(update={"policy": seeker}),
    }
    for reason, case in reasons.items():
        with pytest.raises(Dropped) as dropped:
            SeekerView().row(case)
        assert dropped.value.reason == reason
    assert SeekerView(unresolved=True).row(lost)["resolved"] is False


def test_episodes_that_are_not_resolved_stay_out_unless_told(tmp_path: Path, config: Make) -> None:
    whole = debugged(tmp_path, config)
    lost = whole.model_copy(update={"id": "lost", "scores": (Score(name="resolved", value=0.0),)})
    unknown = whole.model_copy(update={"id": "unknown", "scores": ()})
    (tmp_path / "mixed").mkdir()
    write_jsonl(tmp_path / "mixed" / "trajectories.jsonl", [whole, lost, unknown])
    for view in ("agent", "agent_decisions"):
        found = export_runs([tmp_path / "mixed"], tmp_path / "data", views=[view], test_share=0)
        assert found.dropped == {view: {"not resolved": 1}}
        names = {row.get("episode", row["id"]) for row in load(tmp_path / "data", view)["train"]}
        assert names == {whole.id, "unknown"}
    found = export_runs([tmp_path / "mixed"], tmp_path / "data", views=["agent"], test_share=0, unresolved=True)
    assert found.rows["agent"]["train"] == 3


def test_the_card_counts_and_names_its_origin(tmp_path: Path, config: Make) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        for number in range(4):
            folder.add(episode(f"e{number}", f"p{number}"))
    export_runs([tmp_path / "run"], tmp_path / "out", views=["agent"], license="cc-by-4.0")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---")[1])
    assert header["license"] == "cc-by-4.0"
    assert [entry["config_name"] for entry in header["configs"]] == ["agent"]
    assert "| train | 3 | 3 |" in text
    assert "4 scripted" in text
    assert "4 local" in text
    assert "- outcome: 4 resolved\n" in text
    assert "- columns: `id` (string), `task_id` (string), " in text
    assert "\n- `messages`: the conversation " in text


def test_the_card_tells_runs_of_one_name_apart(tmp_path: Path, config: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, arm in enumerate("ab"):
        with RunFolder(tmp_path / arm / "arms" / "model", config(seed=number)) as folder:
            folder.add(episode(f"e{number}", "p"))
    monkeypatch.chdir(tmp_path / "b")
    export_runs(
        [tmp_path / "a" / "arms" / "model", Path("arms/model")], tmp_path / "out", views=["agent"], test_share=0
    )
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    listed = [line.split("|")[1].strip() for line in text.splitlines() if "arms/model" in line]
    assert listed == ["a/arms/model", "b/arms/model"]
    export_runs([Path("arms/model")], tmp_path / "alone", views=["agent"], test_share=0)
    assert "\n| model | `" in (tmp_path / "alone" / "README.md").read_text(encoding="utf-8")


def test_the_card_says_what_columns_each_view_has(tmp_path: Path, config: Make) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(episode("e", "p"))
    export_runs([tmp_path / "run"], tmp_path / "out", views=["agent_decisions"])
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("- columns: "))
    expected = [f"`{name}` ({kind})" for name, kind in DECISION_COLUMNS.items()]
    assert line.removeprefix("- columns: ").split(", ") == expected
    assert "`messages`" not in text


def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path: Path, config: Make) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(episode("a", "p"))
    for _ in range(2):
        export_runs([tmp_path / "run"], tmp_path / "out", views=["agent"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run", "tasks"]
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(DatasetError, match="is not a Gumshoe export"):
        export_runs([tmp_path / "run"], precious)
    assert (precious / "thesis.txt").exists()


def test_an_empty_export_says_why(tmp_path: Path, config: Make) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(episode("a", "p", resolved=False))
    with pytest.raises(DatasetError, match="1 not resolved"):
        export_runs([tmp_path / "run"], tmp_path / "out", views=["seeker"])
    assert not (tmp_path / "out").exists()


def test_the_command_prints_counts_and_refuses_what_is_no_run(
    tmp_path: Path, config: Make, run_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(episode("a", "p"))
        folder.add(episode("b", "p", resolved=False))
    argv = [str(tmp_path / "run"), "--out", str(tmp_path / "out")]
    done = run_here("export", *argv)
    assert done.returncode == 0
    assert "agent   1 train, 0 test; left out: 1 not resolved" in done.stdout
    assert "seeker  0 train, 0 test; left out: " in done.stdout
    assert "left out: 1 not resolved" in done.stdout
    assert len(load(tmp_path / "out", "agent")["train"]) == 1
    more = run_here("export", *argv, "--unresolved")
    assert "agent   2 train, 0 test\n" in more.stdout
    for wrong, said in (([str(tmp_path)], "is not a run folder"), (["--test-share", "2"], "between 0 and 1")):
        failed = run_here("export", *wrong, *argv)
        assert failed.returncode == 2
        assert said in failed.stderr
        assert failed.stderr.count("\n") == 1


def test_two_exports_of_one_name_are_not_taken_for_one_by_the_cache_of_datasets(tmp_path: Path, config: Make) -> None:
    for name in ("first", "second"):
        with RunFolder(tmp_path / name / "run", config(out=str(tmp_path / name / "run"))) as folder:
            folder.add(episode(f"{name}#0", "alpha"))
        export_runs([tmp_path / name / "run"], tmp_path / name / "dataset", test_share=0.0)
    loaded = [
        datasets.load_dataset(str(tmp_path / name / "dataset"), "agent", cache_dir=str(tmp_path / "cache"))
        for name in ("first", "second")
    ]
    assert [rows["train"]["id"][0] for rows in loaded] == ["first#0", "second#0"]


def test_one_row_a_decision(tmp_path: Path, config: Make) -> None:
    made = config(1)
    collect(made)
    export_runs([Path(made.out)], tmp_path / "out", views=["seeker", "seeker_decisions"])
    (episode_row,) = load(tmp_path / "out", "seeker")["train"]
    rows = load(tmp_path / "out", "seeker_decisions")["train"]
    assert [row["step"] for row in rows] == list(range(len(rows)))
    looks = ["seek"] * (len(rows) - 2)
    assert [row["decision"] for row in rows] == ["verify", *looks, "report"]
    assert len(looks) > 1
    for row in rows:
        both = [*row["prompt"], *row["completion"]]
        assert both == episode_row["messages"][: len(both)]
        assert row["completion"][0]["role"] == "assistant"
        assert row["tools"] == episode_row["tools"]
        assert row["episode"] == episode_row["id"]


def test_episodes_with_something_left_out_are_rows_of_decisions_only(tmp_path: Path, config: Make) -> None:
    whole = debugged(tmp_path, config)
    steps = (*whole.steps[:-1], whole.steps[-1].model_copy(update={"elided": 4}))
    with RunFolder(tmp_path / "elided", config()) as folder:
        folder.add(whole.model_copy(update={"steps": steps}))
    result = export_runs([tmp_path / "elided"], tmp_path / "out", views=["agent", "seeker", "agent_decisions"])
    assert {view: sum(rows.values()) for view, rows in result.rows.items()} == {
        "agent": 0,
        "seeker": 0,
        "agent_decisions": len(whole.steps),
    }
    last = load(tmp_path / "out", "agent_decisions")["train"][-1]
    assert last["prompt"][3]["content"].startswith("[step 0] [left out: ")
    assert last["decision"] == "submit"
