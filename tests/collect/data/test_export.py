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
from gumshoe.collect.data.export.trees import TreeRows
from gumshoe.collect.data.store import read_trajectories
from gumshoe.collect.episode.tool_output import tool_message
from gumshoe.collect.packs import is_quoted
from gumshoe.errors import DatasetError
from gumshoe.records import (
    BranchPoint,
    Completion,
    ContextPack,
    Decision,
    Message,
    Observation,
    Score,
    Step,
    ToolCall,
    Trajectory,
)
from gumshoe.text import escape_json
from support.collect.small_trajectories import NASTY, episode, trajectory, write_run

Make = Callable[..., CollectConfig]


def load(folder: Path, view: str, cache: Path | None = None) -> dict[str, list[dict[str, Any]]]:
    """The rows as `datasets` alone reads them; it keeps its copies beside the folder."""
    loaded: Any = datasets.load_dataset(str(folder), view, cache_dir=str(cache or folder.with_name("cache")))
    return {str(split): list(rows) for split, rows in loaded.items()}


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def test_every_byte_comes_back_from_bare_datasets(tmp_path: Path) -> None:
    episodes = [episode(f"e{number}", f"p{number % 4}", resolved=number % 2 == 0) for number in range(70)]
    run = write_run(tmp_path / "run", *episodes)
    result = export_runs([run], tmp_path / "out", views=["agent"], unresolved=True)
    loaded = load(tmp_path / "out", "agent")
    assert {split: len(rows) for split, rows in loaded.items()} == result.rows["agent"]
    expected = {one.id: agent_row(one) for one in episodes}
    found = {row["id"]: row for rows in loaded.values() for row in rows}
    assert canonical(found) == canonical(expected)
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


def test_splits_are_by_project(tmp_path: Path) -> None:
    held_out = [episode("h", "elsewhere", split="heldout_projects"), episode("b", "p1", split="heldout_bugs")]
    run = write_run(tmp_path / "run", *(episode(f"e{n}", f"p{n % 10}") for n in range(40)), *held_out)
    result = export_runs([run], tmp_path / "out", views=["agent"], test_share=0.2)
    assert result.rows["agent"] == {"train": 32, "test": 9}
    assert result.dropped["agent"] == {"held-out bug": 1}
    kept = export_runs([run], tmp_path / "out", views=["agent"], test_share=0, held_out_bugs=True)
    assert kept.rows["agent"] == {"train": 41, "test": 1}


def test_the_seeker_view_of_a_debugging_episode_is_what_a_seeker_would_be_served(tmp_path: Path, config: Make) -> None:
    debug, seeker = config(2), config(2, out=str(tmp_path / "seek"), agent={"kind": "seeker"})
    for run in (debug, seeker):
        assert collect(run).finished == 2
    views = ["agent", "seeker", "seeker_decisions"]
    assert export_runs([Path(debug.out)], tmp_path / "a", views=views).dropped == {view: {} for view in views}
    export_runs([Path(seeker.out)], tmp_path / "b")
    derived = {row["task_id"]: row for rows in load(tmp_path / "a", "seeker").values() for row in rows}
    played = {row["task_id"]: row for rows in load(tmp_path / "b", "seeker").values() for row in rows}
    assert len(derived) == len(played) == 2
    for task, row in derived.items():
        assert row["tools"] == played[task]["tools"]
        assert row["messages"][:2] == played[task]["messages"][:2]
        roles = [[message["role"] for message in one["messages"]] for one in (row, played[task])]
        assert roles[0] == roles[1]
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
    decisions = [row for rows in load(tmp_path / "a", "seeker_decisions").values() for row in rows]
    assert {row["task_id"] for row in decisions} == derived.keys()
    for row in decisions:
        whole = derived[row["task_id"]]
        both = [*row["prompt"], *row["completion"]]
        assert both == whole["messages"][: len(both)]
        assert sum(message["role"] == "assistant" for message in both) == row["step"] + 1
        assert row["decision"] == whole["steps"][row["step"]]["decision"]
        assert both[-1]["role"] == "assistant"
        assert (row["tools"], row["episode"]) == (whole["tools"], whole["id"])


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

    def beginning(completion: Completion) -> Trajectory:
        first = whole.steps[0].model_copy(update={"completion": completion})
        return whole.model_copy(update={"steps": (first, *whole.steps[1:])})

    lost = whole.model_copy(update={"scores": (Score(name="resolved", value=0.0),)})
    edit = next(step.index for step in whole.steps if step.tool_calls[0].name == "rewrite")
    blind = whole.model_copy(update={"steps": whole.steps[edit:]})
    bash = ToolCall(id="c", name="bash", arguments={})
    unseen = whole.model_copy(update={"patch": whole.patch.replace("shop.py", "shopping.py")})
    seeker = whole.policy.model_copy(update={"agent": "seeker"})
    reasons = {
        "not resolved": lost,
        "no information-seeking step before the first edit": blind,
        "a tool that the seeker lacks": beginning(Completion(text="", tool_calls=(bash,))),
        "a turn without a call before the first edit": beginning(Completion(text="")),
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
    run = write_run(tmp_path / "mixed", whole, lost, unknown)
    for view in ("agent", "agent_decisions"):
        found = export_runs([run], tmp_path / "data", views=[view], test_share=0)
        assert found.dropped == {view: {"not resolved": 1}}
        names = {row.get("episode", row["id"]) for row in load(tmp_path / "data", view)["train"]}
        assert names == {whole.id, "unknown"}
    found = export_runs([run], tmp_path / "data", views=["agent"], test_share=0, unresolved=True)
    assert found.rows["agent"]["train"] == 3


def test_the_card_counts_and_names_its_origin(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", *(episode(f"e{number}", f"p{number}") for number in range(4)))
    export_runs([run], tmp_path / "out", views=["agent", "agent_decisions"], license="cc-by-4.0")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---")[1])
    assert header["license"] == "cc-by-4.0"
    assert [entry["config_name"] for entry in header["configs"]] == ["agent", "agent_decisions"]
    for part in (
        "| train | 3 | 3 |",
        "4 scripted",
        "4 local",
        "- outcome: 4 resolved\n",
        "\n- `messages`: the conversation ",
    ):
        assert part in text
    listed = [
        line.removeprefix("- columns: ").split(", ") for line in text.splitlines() if line.startswith("- columns: ")
    ]
    for found, columns in zip(listed, (COLUMNS, DECISION_COLUMNS), strict=True):
        assert found == [f"`{name}` ({kind})" for name, kind in columns.items()]


def test_the_card_tells_runs_of_one_name_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (write_run(tmp_path / arm / "arms" / "model", episode(arm, "p")) for arm in "ab")
    monkeypatch.chdir(tmp_path / "b")
    export_runs([first, Path("arms/model")], tmp_path / "out", views=["agent"], test_share=0)
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    listed = [line.split("|")[1].strip() for line in text.splitlines() if "arms/model" in line]
    assert listed == ["a/arms/model", "b/arms/model"]
    export_runs([second], tmp_path / "alone", views=["agent"], test_share=0)
    assert "\n| model | `" in (tmp_path / "alone" / "README.md").read_text(encoding="utf-8")


def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", episode("a", "p"))
    for _ in range(2):
        export_runs([run], tmp_path / "out", views=["agent"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "run"]
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    with pytest.raises(DatasetError, match="is not a Gumshoe export"):
        export_runs([run], precious)
    assert (precious / "thesis.txt").exists()


def test_the_command_prints_counts_and_refuses_what_gives_no_rows(
    tmp_path: Path, run_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    run = write_run(tmp_path / "run", episode("a", "p"), episode("b", "p", resolved=False))
    argv = [str(run), "--out", str(tmp_path / "out")]
    done = run_here("export", *argv)
    assert done.returncode == 0
    assert "agent   1 train, 0 test; left out: 1 not resolved" in done.stdout
    assert "seeker  0 train, 0 test; left out: " in done.stdout
    assert len(load(tmp_path / "out", "agent")["train"]) == 1
    more = run_here("export", *argv, "--unresolved")
    assert "agent   2 train, 0 test\n" in more.stdout
    lost = write_run(tmp_path / "lost", episode("a", "p", resolved=False))
    for wrong, said in (
        ([str(tmp_path), *argv], "is not a run folder"),
        (["--test-share", "2", *argv], "between 0 and 1"),
        ([str(lost), "--out", str(tmp_path / "none"), "--view", "seeker"], "1 not resolved"),
    ):
        failed = run_here("export", *wrong)
        assert (failed.returncode, failed.stderr.count("\n")) == (2, 1)
        assert said in failed.stderr
    assert not (tmp_path / "none").exists()


def test_two_exports_of_one_name_are_not_taken_for_one_by_the_cache_of_datasets(tmp_path: Path) -> None:
    for name in ("first", "second"):
        run = write_run(tmp_path / name / "run", episode(name, "alpha"))
        export_runs([run], tmp_path / name / "dataset", test_share=0.0)
    found = [load(tmp_path / name / "dataset", "agent", tmp_path / "cache") for name in ("first", "second")]
    assert [rows["train"][0]["id"] for rows in found] == ["first", "second"]


def test_episodes_with_something_left_out_are_rows_of_decisions_only(tmp_path: Path, config: Make) -> None:
    whole = debugged(tmp_path, config)
    steps = (*whole.steps[:-1], whole.steps[-1].model_copy(update={"elided": 4}))
    run = write_run(tmp_path / "elided", whole.model_copy(update={"steps": steps}))
    result = export_runs([run], tmp_path / "out", views=["agent", "seeker", "agent_decisions"])
    assert [sum(rows.values()) for rows in result.rows.values()] == [0, 0, len(whole.steps)]
    last = load(tmp_path / "out", "agent_decisions")["train"][-1]
    assert last["prompt"][3]["content"].startswith("[step 0] [left out: ")
    assert last["decision"] == "submit"


OPENING = (Message(role="system", content="You debug."), Message(role="user", content="It fails."))


def step(messages: list[Message], index: int, name: str, **arguments: Any) -> Step:
    """A turn, which is added to the messages."""
    call = ToolCall(id=f"c{index}", name=name, arguments=arguments)
    completion = Completion(text=f"I call {name}.", tool_calls=(call,))
    seen = Observation(tool=name, text=f"{name} answered")
    made = Step(
        index=index,
        message_index=len(messages),
        decision=Decision.SEEK if name == "view" else Decision.SUBMIT,
        completion=completion,
        observations=(seen,),
    )
    messages += [completion.as_message(), tool_message(index, seen, call)]
    return made


def looking(name: str, outcome: float | None, *lines: int) -> Trajectory:
    """One that looks at some lines and submits; `name` is its id, and `PARENT/STEP.NUMBER` of a branch."""
    messages = list(OPENING)
    steps = [step(messages, index, "view", path="a.py", start=line) for index, line in enumerate(lines)]
    steps.append(step(messages, len(steps), "submit"))
    parent, _, place = name.rpartition("/")
    return trajectory(
        name,
        messages=tuple(messages),
        steps=tuple(steps),
        scores=(Score(name="resolved", value=outcome),),
        branch=BranchPoint(parent=parent, step=int(place.partition(".")[0])) if parent else None,
    )


TREE = [
    looking("t", 1.0, 1, 2),
    looking("t/1.1", 0.0, 1, 3),
    looking("t/1.2", 0.0, 1, 2),
    looking("t/1.3", None, 1, 4),
    looking("t/1.1/2.1", 1.0, 1, 3, 9),
]


def test_a_pair_is_two_decisions_that_differ_in_what_they_were_worth() -> None:
    rows = list(TreeRows(lambda: TREE).preferences(TREE[0]))
    assert [row["id"] for row in rows] == ["t/1/0>1", "t/1/1>2"], "what has no outcome, or calls the same, is no pair"
    first, second = rows
    assert [message["role"] for message in first["prompt"]] == ["system", "user", "assistant", "tool"]
    assert first["chosen"][0]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py", "start": 2}
    assert first["rejected"][0]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py", "start": 3}
    assert (first["chosen_value"], first["rejected_value"]) == (1.0, 0.5)
    assert (first["chosen_count"], first["rejected_count"]) == (1, 2)
    assert (second["chosen_value"], second["rejected_value"]) == (0.5, 0.0)
    deeper = list(TreeRows(lambda: TREE).preferences(TREE[1]))
    assert [row["id"] for row in deeper] == ["t/1.1/2/1>0"]
    with pytest.raises(Dropped, match="none of its decisions branches"):
        list(TreeRows(lambda: TREE).preferences(TREE[4]))


def test_every_step_of_an_episode_has_a_value_a_label_and_its_text() -> None:
    rows = TreeRows(lambda: TREE)
    whole = rows.scored(TREE[0])
    assert whole["values"] == [0.5, 1.0, 1.0]
    assert whole["counts"] == [4, 1, 1]
    assert whole["advantages"] == [None, 0.75, None]
    assert whole["labels"] == [True, True, True]
    assert whole["prompt"].startswith("You debug.")
    assert whole["prompt"].endswith("It fails.")
    assert whole["completions"][0].startswith("I call view.\n<tool_call>")
    assert whole["completions"][1].startswith("<tool_response>\n[step 0] view answered\n</tool_response>\nI call view.")
    assert len(whole["completions"]) == 3
    branch = rows.scored(TREE[2])
    assert branch["values"] == [0.5, 0.0, 0.0], "the steps before the branch are its parent's"
    assert branch["labels"] == [True, False, False]
    with pytest.raises(Dropped, match="no outcome"):
        rows.scored(TREE[3])


def test_a_report_that_a_probe_contradicts_is_the_worse_one() -> None:
    def reported(name: str, line: int, status: str) -> Trajectory:
        made = looking(name, 0.0, 1)
        finding = {"claim": "x is 3", "step": 0, "quote": "x = 3", "check": {"status": status}}
        last = made.steps[-1]
        call = last.tool_calls[0].model_copy(update={"arguments": {"line": line}})
        seen = last.observations[0].model_copy(update={"data": {"context_pack": {"findings": [finding]}}})
        changed = last.completion.model_copy(update={"tool_calls": (call,)})
        step = last.model_copy(update={"observations": (seen,), "completion": changed})
        return made.model_copy(update={"steps": (*made.steps[:-1], step)})

    tree = [reported("t", 1, "contradicted"), reported("t/1.1", 2, "confirmed"), reported("t/1.2", 3, "confirmed")]
    rows = TreeRows(lambda: tree)
    assert [row["id"] for row in rows.preferences(tree[0])] == ["t/1/1>0", "t/1/2>0"]
    assert rows.scored(tree[0])["contradicted"] == [False, True]
    solved = tree[0].model_copy(update={"scores": (Score(name="resolved", value=1.0),)})
    assert TreeRows(lambda: [solved]).scored(solved)["labels"] == [True, False]


def test_the_views_of_trees_load_with_datasets_alone(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", *TREE)
    result = export_runs([run], tmp_path / "out", views=["preferences", "steps_scored"], test_share=0)
    assert {view: counts["train"] for view, counts in result.rows.items()} == {"preferences": 3, "steps_scored": 4}
    assert result.dropped["preferences"] == {"none of its decisions branches": 3}
    pairs, scored = (load(tmp_path / "out", view)["train"] for view in result.rows)
    assert pairs[0]["chosen"][0]["tool_calls"][0]["function"]["arguments"] == {"path": "a.py", "start": 2}
    assert scored[0]["labels"] == [True, True, True]
    assert "`preferences`: two decisions tried in one place" in (tmp_path / "out" / "README.md").read_text()
