"""Serving: a real `transformers serve` on a micro model, and small real servers for what goes wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import openai
import pytest

from gumshoe.collect.config import OpenAIConfig
from gumshoe.collect.policies.providers.openai import OpenAIPolicy
from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.backends import check_model_folder, lay_out_for_transformers
from gumshoe.records import Completion, Message, ToolSchema

TOOLS = json.loads((Path(__file__).parents[1] / "support" / "eval" / "micro_tools.json").read_text())
VIEW = ToolSchema(**TOOLS[0]["function"])


def completed(config: OpenAIConfig, messages: Sequence[Message]) -> Completion:
    with closing(OpenAIPolicy(config)) as policy:
        return policy.complete(messages, [VIEW])


def ask(server: ModelServer, messages: Sequence[Message]) -> Completion:
    return completed(
        OpenAIConfig(model=server.model, base_url=server.base_url, syntax="template", temperature=0.0, max_tokens=90),
        messages,
    )


# --- what is served -----------------------------------------------------------------------------------------------


def test_answers_are_those_that_the_model_wrote_also_when_their_prompt_is_cached(served: ModelServer) -> None:
    """A call that is broken comes back as data and not as an error of the server."""
    assert served.model == "seeker"
    conversations = [[Message(role="user", content=text)] for text in ("good", "bad", "good", "bad")]
    with ThreadPoolExecutor(2) as pool:
        good, bad, *again = pool.map(lambda messages: ask(served, messages), conversations)
    assert good.text == bad.text == "[seek 0.9] I look"
    assert [(call.name, call.arguments) for call in good.tool_calls] == [("view", {"path": "a.py"})]
    (call,) = bad.tool_calls
    assert call.parse_error is not None
    for first, second in zip((good, bad), again, strict=True):
        assert (second.text, second.finish_reason) == (first.text, first.finish_reason)
        assert [call.arguments for call in second.tool_calls] == [call.arguments for call in first.tool_calls]
        assert second.usage.prompt_tokens == first.usage.prompt_tokens


def test_a_name_that_is_no_file_name_is_refused(micro_model: Path) -> None:
    with (
        pytest.raises(ServeError, match="cannot serve a model as 'a/b'"),
        ModelServer(micro_model, ServeConfig(backend="transformers", name="a/b")),
    ):
        pass


def test_a_call_that_the_length_limit_cuts_off_comes_back_as_data(served: ModelServer) -> None:
    config = OpenAIConfig(
        model=served.model, base_url=served.base_url, syntax="template", temperature=0.0, max_tokens=18
    )
    completion = completed(config, [Message(role="user", content="good")])
    assert completion.finish_reason == "length"
    assert completion.tool_calls[0].parse_error is not None


def test_the_command_is_shown_whole_and_the_log_begins_with_it(served: ModelServer) -> None:
    assert served.prepared.backend == "transformers"
    command = served.prepared.shell_command
    assert command.endswith(" ".join(served.prepared.command[-2:]))
    assert "HF_HUB_OFFLINE=1" in command
    assert served.log.read_text().startswith(f"$ {command}\n")
    assert served.healthy()
    served.check()


# --- the model folder ---------------------------------------------------------------------------------------------


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(ServeError, match=r"there is no model folder .*nowhere"):
        ModelServer(Path("/nowhere")).start()


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ((), "no config.json"),
        (("config.json",), "no tokenizer"),
        (("config.json", "tokenizer.json"), "no weights"),
        (("config.json", "tokenizer.json", "model.safetensors"), "no chat template"),
    ],
)
def test_a_folder_that_is_no_model_says_what_it_lacks(tmp_path: Path, files: tuple[str, ...], missing: str) -> None:
    for name in files:
        (tmp_path / name).write_text("{}")
    with pytest.raises(ServeError, match=missing):
        check_model_folder(tmp_path)


JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json")


@pytest.mark.parametrize(
    ("damaged", "content", "named"),
    [
        *((name, content, name) for name in JSON_FILES for content in (b"{", b"[]", b"null")),
        ("chat_template.jinja", b"\xff", "the chat template of .*"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, damaged: str, content: bytes, named: str) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    (tmp_path / damaged).write_bytes(content)
    with pytest.raises(ServeError, match=rf"{named} cannot be read"):
        check_model_folder(tmp_path)


def test_the_layout_links_every_file_and_leaves_the_model_as_it_is(micro_model: Path, tmp_path: Path) -> None:
    before = (micro_model / "tokenizer_config.json").read_bytes()
    view = lay_out_for_transformers(micro_model, tmp_path / "view")
    assert {path.name for path in view.iterdir()} == {path.name for path in micro_model.iterdir()}
    assert (micro_model / "tokenizer_config.json").read_bytes() == before
    template = json.loads((view / "tokenizer_config.json").read_text())["response_template"]
    assert template["fields"] == {
        "content": {"content": "text", "content_args": {"strip": False}, "close": ["<|im_end|>"]}
    }


def test_end_tokens_may_be_a_list_and_may_be_missing(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    added = [{"id": 7, "content": "<end>"}, {"id": 8, "content": "<stop>"}, {"id": 9, "content": "<other>"}]
    (model / "tokenizer.json").write_text(json.dumps({"added_tokens": added}))
    (model / "generation_config.json").write_text(json.dumps({"eos_token_id": [7, 8]}))
    (model / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<eos>"}}))
    written = json.loads((lay_out_for_transformers(model, tmp_path / "one") / "tokenizer_config.json").read_text())
    assert written["response_template"]["fields"]["content"]["close"] == ["<end>", "<eos>", "<stop>"]
    for name in ("generation_config.json", "tokenizer_config.json"):
        (model / name).write_text("[]")
    written = json.loads((lay_out_for_transformers(model, tmp_path / "two") / "tokenizer_config.json").read_text())
    assert "close" not in written["response_template"]["fields"]["content"]


# --- the command --------------------------------------------------------------------------------------------------


def test_a_client_of_the_sdk_needs_nothing_of_ours(served: ModelServer) -> None:
    client = openai.OpenAI(base_url=served.base_url, api_key="none", max_retries=0)
    answer = client.chat.completions.create(
        model=served.model, messages=[{"role": "user", "content": "good"}], tools=TOOLS, temperature=0, max_tokens=90
    )
    assert "<tool_call>" in (answer.choices[0].message.content or "")
    client.close()


# vLLM from an environment of its own, which `.ci/vllm.sh FOLDER` makes; if it is required, it may not be missing.
PYTHON = os.environ.get("GUMSHOE_VLLM_PYTHON", "")
REQUIRED = os.environ.get("GUMSHOE_REQUIRE_VLLM") == "1"


@pytest.mark.skipif(not PYTHON and not REQUIRED, reason="GUMSHOE_VLLM_PYTHON names no environment with vLLM")
@pytest.mark.timeout(900)
def test_vllm_serves_a_model_as_it_was_trained(micro_model: Path, tmp_path: Path) -> None:
    """One start serves every item: calls that it reads itself, and every conversation token by token."""
    assert PYTHON, "GUMSHOE_REQUIRE_VLLM=1, but GUMSHOE_VLLM_PYTHON names no interpreter: .ci/vllm.sh FOLDER makes one"
    command = [sys.executable, "-m", "gumshoe", "serve", str(micro_model), "--python", PYTHON, "--backend", "vllm"]
    command += ["--port", "0", "--check", "--ask", "good", "--log", str(tmp_path / "log"), "-p", "max_length=4096"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "vllm.entrypoints.openai.api_server" in done.stdout, done.stderr
    columns = [re.split(r"\s{2,}", line, maxsplit=2) for line in done.stdout.splitlines()[4:-1]]
    items = {item: status for status, item, *_ in columns}
    for item in ("native calls", "streaming"):
        assert items[item] == "ok", done.stdout
    renderings = [item for item in items if " as trained, syntax " in item]
    assert len(renderings) == 4
    assert {items[item] for item in renderings} == {"ok"}, done.stdout
    assert done.stdout.count("token by token") == 4
