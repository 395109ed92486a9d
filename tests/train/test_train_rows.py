"""A row that cannot be trained on is named before anything is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.errors import DatasetError
from gumshoe.train.data import conversations, load_rows
from support.train.micro_config import make_config
from support.train.training_rows import TOOLS, conversation, row

ASKED = {"role": "user", "content": "Look."}
COMPLETION = {"id": "d", "prompt": conversation(0)[:4], "completion": conversation(0)[4:5]}


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
def test_prompts_and_completions_train_with_tools_in_every_form(tools: Any, tmp_path: Path) -> None:
    data = json_dataset(tmp_path / "data", *[{**COMPLETION, "tools": tools}] * 2)
    config = tmp_path / "config.yaml"
    config.write_text(make_config(data, tmp_path / "run", view="default", max_steps=1).model_dump_json())
    assert main(["train", str(config)]) == 0
    assert (tmp_path / "run" / "model" / "config.json").is_file()


def test_preflight_refuses_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    data = json_dataset(tmp_path / "data", said(tool_calls=["view"]))
    config.write_text(make_config(data, tmp_path / "run", view="default").model_dump_json())
    assert main(["preflight", str(config)]) == 2
    assert "gumshoe preflight: row 0 (episode-0) cannot be used: messages.1.tool_calls.0" in capsys.readouterr().err
