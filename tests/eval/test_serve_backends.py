"""Which server is chosen, and the command line and variables that it is started with."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve.backends import (
    Backend,
    Installed,
    choose_backend,
    environment,
    look_for,
    serve_command,
)


def installed(vllm: str | None = None, transformers: str | None = None, *, gpu: bool = False) -> Installed:
    return Installed("python", vllm, transformers, gpu)


def test_vllm_is_taken_where_it_is_installed_else_transformers() -> None:
    assert choose_backend("auto", installed("0.32", "5.23")) == "vllm"
    assert choose_backend("auto", installed(None, "5.23")) == "transformers"
    assert choose_backend("transformers", installed("0.32", "5.23")) == "transformers"


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("auto", "python has neither vLLM nor transformers' server: pip install"),
        ("vllm", "python has no vllm: name the interpreter"),
        ("transformers", "python has no transformers: pip install"),
    ],
)
def test_nothing_installed_is_one_line_with_a_cure(wanted: str, said: str) -> None:
    with pytest.raises(ServeError, match=said):
        choose_backend(wanted, installed())


def test_an_interpreter_that_is_not_there_is_named() -> None:
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


def test_the_server_is_kept_off_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HOME", raising=False)
    variables = environment("vllm", ServeConfig(threads=2), installed("0.32"), model=tmp_path, scratch=tmp_path)
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert (Path(variables["HF_HOME"]) / "hub").is_dir()
    assert (variables["OMP_NUM_THREADS"], variables["VLLM_CPU_KVCACHE_SPACE"]) == ("2", "1")
    monkeypatch.setenv("HF_HOME", "/cache")
    on_gpu = environment(
        "transformers", ServeConfig(), installed(None, "5", gpu=True), model=tmp_path, scratch=tmp_path
    )
    assert on_gpu.keys().isdisjoint({"HF_HOME", "OMP_NUM_THREADS", "MALLOC_MMAP_MAX_"})


def test_a_small_model_gets_two_threads_and_a_large_one_what_it_wants(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.touch()
    small = environment("transformers", ServeConfig(), installed(None, "5"), model=tmp_path, scratch=tmp_path)
    assert small["OMP_NUM_THREADS"] == "2"
    assert small["MALLOC_MMAP_MAX_"] == "0"
    os.truncate(weights, 1 << 30)
    large = environment("transformers", ServeConfig(), installed(None, "5"), model=tmp_path, scratch=tmp_path)
    assert "OMP_NUM_THREADS" not in large
