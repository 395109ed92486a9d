"""Reading datasets: a folder, a split or a row that cannot be trained on is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.errors import DatasetError
from gumshoe.train.rows.dataset import conversations, load_rows
from support.train.tiny_model import make_config
from support.train.training_rows import TOOLS, conversation, row, write_dataset

ASKED = {"role": "user", "content": "Look."}
COMPLETION = {"id": "d", "prompt": conversation(0)[:4], "completion": conversation(0)[4:5]}


def test_rows_come_back_as_they_were_written(dataset: Path) -> None:
    rows = load_rows(dataset, "seeker", "train")
    assert len(rows) == 6
    assert rows[5]["messages"] == conversation(5)
    assert "path" not in rows[5]["tools"][0]["function"]["parameters"]["properties"]


def test_a_run_folder_is_no_dataset(tmp_path: Path) -> None:
    (tmp_path / "trajectories.jsonl").touch()
    with pytest.raises(DatasetError, match=r"is a run folder: make a dataset from it with `gumshoe export .* --out"):
        load_rows(tmp_path, "seeker", "train")


@pytest.mark.parametrize(
    ("folder", "view", "split", "message"),
    [
        ("none", "seeker", "train", r"there is no dataset folder .*gumshoe export"),
        (".", "agent", "train", "has no view 'agent': it has seeker"),
        (".", "seeker", "dev", "has no split 'dev': it has train, test"),
    ],
)
def test_what_a_dataset_lacks_is_named(dataset: Path, folder: str, view: str, split: str, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        load_rows(dataset / folder, view, split)


def test_what_holds_no_rows_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing here")
    with pytest.raises(DatasetError, match="has no view 'seeker'"):
        load_rows(tmp_path, "seeker", "train")
    with pytest.raises(DatasetError, match="cannot be read"):
        load_rows(tmp_path, "default", "train")
    write_dataset(tmp_path, {"train": [row(0)], "test": []})
    with pytest.raises(DatasetError, match=r"cannot be read: .*no data"):
        load_rows(tmp_path, "seeker", "test")
    next((tmp_path / "seeker").glob("train*")).write_bytes(b"not parquet")
    with pytest.raises(DatasetError, match="cannot be read"):
        load_rows(tmp_path, "seeker", "train")


def test_a_dataset_written_again_is_read_again(tmp_path: Path) -> None:
    for number in (1, 2):
        write_dataset(tmp_path / "data", {"train": [row(number)]})
        assert load_rows(tmp_path / "data", "seeker", "train")["id"][:] == [f"episode-{number}"]


def json_dataset(folder: Path, *rows: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "train.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def said(**changes: Any) -> dict[str, Any]:
    return row(0, messages=[ASKED, {"role": "assistant", "content": "Yes.", **changes}])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{**COMPLETION, "prompt": "hello", "completion": "world"}], r"row 0 \(d\) cannot be used: prompt: .* list"),
        ([{**COMPLETION, "prompt": [{"content": "x"}]}], r"row 0 \(d\) .*: prompt.0.role: Field required"),
        ([COMPLETION, {**COMPLETION, "completion": None}], r"row 1 \(d\) cannot be used: completion: "),
        ([row(0), row(1, messages=None)], r"row 1 \(episode-1\) cannot be used: messages: "),
        ([row(0), row(1, messages=[*conversation(1), None])], r"row 1 .*: messages.7: "),
        ([said(tool_calls=["view"])], r"messages.1.tool_calls.0: "),
        ([said(tool_calls=[{"function": "view"}])], r"messages.1.tool_calls.0.function: "),
        ([said(content=4)], r"messages.1.content"),
        ([row(0, tools="view, eval")], r"tools is a text that is not JSON: Expecting value"),
        ([row(0, tools=["view"])], r"tools.0: "),
        ([row(0, steps=3)], r"steps: "),
        ([row(0, sampled=[{"message": 2}])], r"sampled.0.token_ids: Field required"),
        ([row(0), None], r"train.jsonl line 2 is null"),
        ([], r"it holds no rows"),
    ],
)
def test_a_row_of_another_form_is_named(rows: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=message):
        list(conversations(load_rows(json_dataset(tmp_path / "data", *rows), "default", "train")))


@pytest.mark.parametrize("tools", [json.dumps(TOOLS), [tool["function"] for tool in TOOLS]], ids=["text", "flat"])
def test_prompts_and_completions_train_with_tools_in_every_form(
    tools: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = json_dataset(tmp_path / "data", *[{**COMPLETION, "tools": tools}] * 2)
    config = tmp_path / "config.yaml"
    config.write_text(make_config(data, tmp_path / "run", view="default").model_dump_json())
    assert main(["preflight", str(config)]) == 0
    assert "2 rows" in capsys.readouterr().out
