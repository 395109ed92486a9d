"""Serving: a real `transformers serve` on a micro model; model folders; which server is started, and how."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.config import OpenAIConfig
from gumshoe.collect.policies.providers.openai import OpenAIPolicy
from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.backends import (
    Backend,
    Installed,
    check_model_folder,
    choose_backend,
    environment,
    lay_out_for_transformers,
    look_for,
    serve_command,
)
from gumshoe.records import Completion, Message, ToolSchema

TOOLS = json.loads((Path(__file__).parents[1] / "support" / "eval" / "micro_tools.json").read_text())
VIEW = ToolSchema(**TOOLS[0]["function"])


def ask(server: ModelServer, text: str, max_tokens: int = 90) -> Completion:
    sampling: dict[str, Any] = {"temperature": 0.0, "max_tokens": max_tokens}
    config = OpenAIConfig(model=server.model, base_url=server.base_url, syntax="template", **sampling)
    with closing(OpenAIPolicy(config)) as policy:
        return policy.complete([Message(role="user", content=text)], [VIEW])


def test_answers_are_those_that_the_model_wrote_also_when_their_prompt_is_cached(served: ModelServer) -> None:
    """A call that is broken, or cut off, comes back as data and not as an error of the server."""
    assert served.model == "seeker"
    with ThreadPoolExecutor(2) as pool:
        good, bad, *again = pool.map(lambda text: ask(served, text), ("good", "bad", "good", "bad"))
    assert good.text == bad.text == "[seek 0.9] I look"
    assert [(call.name, call.arguments) for call in good.tool_calls] == [("view", {"path": "a.py"})]
    (call,) = bad.tool_calls
    assert call.parse_error is not None
    for first, second in zip((good, bad), again, strict=True):
        assert (second.text, second.finish_reason) == (first.text, first.finish_reason)
        assert [call.arguments for call in second.tool_calls] == [call.arguments for call in first.tool_calls]
        assert second.usage.prompt_tokens == first.usage.prompt_tokens
    command = served.prepared.shell_command
    assert served.prepared.backend == "transformers"
    assert command.endswith(" ".join(served.prepared.command[-2:]))
    assert "HF_HUB_OFFLINE=1" in command
    assert served.log.read_text().startswith(f"$ {command}\n")
    cut_off = ask(served, "good", max_tokens=18)
    assert cut_off.finish_reason == "length"
    assert cut_off.tool_calls[0].parse_error is not None


NO_MODEL = (
    ((), "no config.json"),
    (("config.json",), "no tokenizer"),
    (("config.json", "tokenizer.json"), "no weights"),
    (("config.json", "tokenizer.json", "model.safetensors"), "no chat template"),
)
JSON_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json")


@pytest.mark.parametrize(
    ("files", "damaged", "said"),
    [
        *((files, {}, said) for files, said in NO_MODEL),
        *((NO_MODEL[-1][0], {name: data}, f"{name} cannot") for name in JSON_FILES for data in (b"{", b"[]", b"null")),
        (NO_MODEL[-1][0], {"chat_template.jinja": b"\xff"}, "the chat template of .* cannot"),
    ],
)
def test_a_folder_that_is_no_model_says_why(
    tmp_path: Path, files: tuple[str, ...], damaged: dict[str, bytes], said: str
) -> None:
    for name, data in (dict.fromkeys(files, b"{}") | damaged).items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ServeError, match=said):
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


def installed(vllm: str | None = None, transformers: str | None = None, *, gpu: bool = False) -> Installed:
    return Installed("python", vllm, transformers, gpu)


def test_vllm_is_taken_where_it_is_installed_else_transformers() -> None:
    assert choose_backend("auto", installed("0.32", "5.23")) == "vllm"
    assert choose_backend("auto", installed(None, "5.23")) == "transformers"
    assert choose_backend("transformers", installed("0.32", "5.23")) == "transformers"
    for wanted, said in (
        ("auto", "python has neither vLLM nor transformers' server: pip install"),
        ("vllm", "python has no vllm: name the interpreter"),
        ("transformers", "python has no transformers: pip install"),
    ):
        with pytest.raises(ServeError, match=said):
            choose_backend(wanted, installed())
    with pytest.raises(ServeError, match="there is no interpreter /nowhere/python"):
        look_for("/nowhere/python")
    with pytest.raises(ServeError, match="the interpreter false cannot be used"):
        look_for("false")


def test_the_vllm_command_has_the_flags_of_tools_and_template(tmp_path: Path) -> None:
    config = ServeConfig(max_length=99, tensor_parallel=2, arguments=("--seed", "1"))
    argv, name = serve_command("vllm", config, installed("0.32"), model=tmp_path, port=5)
    text = " ".join(argv)
    assert text.startswith(f"python -m vllm.entrypoints.openai.api_server --model {tmp_path}")
    assert name == str(tmp_path)
    for flags in (
        "--port 5",
        "--max-model-len 99",
        "--enable-auto-tool-choice --tool-call-parser hermes",
        "--tensor-parallel-size 2",
        "--enforce-eager --dtype float32",
    ):
        assert flags in text
    assert text.endswith("--seed 1")
    on_gpu, named = serve_command(
        "vllm", ServeConfig(name="seeker"), installed("0.32", gpu=True), model=tmp_path, port=5
    )
    assert named == "seeker"
    assert "--enforce-eager" not in on_gpu
    assert on_gpu[-2:] == ["--dtype", "auto"]


@pytest.mark.parametrize(
    ("stored", "bf16", "dtype"),
    [
        ('{"dtype": "bfloat16"}', True, "bfloat16"),
        ('{"torch_dtype": "bfloat16"}', True, "bfloat16"),
        ('{"dtype": "bfloat16"}', False, "float32"),
        ('{"dtype": "float16"}', True, "float32"),
        ("{}", True, "float32"),
        ("[]", True, "float32"),
        ("", True, "float32"),
    ],
)
def test_a_processor_computes_in_bfloat16_what_is_stored_so_if_it_can(
    stored: str, bf16: bool, dtype: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(stored)
    found = Installed("python", "0.32", "5.23", gpu=False, bf16=bf16)
    backends: tuple[Backend, ...] = ("vllm", "transformers")
    for backend, (wanted, used) in product(backends, (("auto", dtype), ("float16", "float16"))):
        config = ServeConfig(backend=backend, dtype=wanted)
        argv, _ = serve_command(backend, config, found, model=tmp_path, port=5)
        assert argv[argv.index("--dtype") + 1] == used


def test_the_server_is_kept_off_the_hub_and_a_small_model_gets_two_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def variables(found: Installed, backend: Backend = "transformers", **options: Any) -> dict[str, str]:
        return environment(backend, ServeConfig(**options), found, model=tmp_path, scratch=tmp_path)

    monkeypatch.delenv("HF_HOME", raising=False)
    (tmp_path / "model.safetensors").touch()
    small = variables(installed("0.32"), "vllm")
    assert small["HF_HUB_OFFLINE"] == "1"
    assert (Path(small["HF_HOME"]) / "hub").is_dir()
    assert (small["OMP_NUM_THREADS"], small["VLLM_CPU_KVCACHE_SPACE"]) == ("2", "1")
    monkeypatch.setenv("HF_HOME", "/cache")
    on_gpu = variables(installed(None, "5", gpu=True))
    assert on_gpu.keys().isdisjoint({"HF_HOME", "OMP_NUM_THREADS", "MALLOC_MMAP_MAX_"})
    os.truncate(tmp_path / "model.safetensors", 1 << 30)
    large = variables(installed(None, "5"))
    assert large["MALLOC_MMAP_MAX_"] == "0"
    assert "OMP_NUM_THREADS" not in large
    assert variables(installed(None, "5"), threads=4)["OMP_NUM_THREADS"] == "4"


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
