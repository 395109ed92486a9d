"""Weights in a `.gguf` file as an ordinary model folder."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import struct
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gumshoe.errors import ConfigError

__all__ = ["cache_folder", "is_gguf", "unpack"]

_MAGIC = b"GGUF"


def is_gguf(model: str) -> bool:
    """Whether `model` names a GGUF file."""
    return model.endswith(".gguf")


def cache_folder() -> Path:
    """Where unpacked weights are kept: `GUMSHOE_CACHE`, or `gumshoe` in the user's cache folder."""
    own = os.environ.get("GUMSHOE_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gumshoe"


def unpack(file: Path) -> Path:
    """A model folder with the weights of `file`, dequantized to bfloat16, and its tokenizer.

    It is made in the cache, once for each content, and appears there only when it is complete.

    Raises:
        ConfigError: the file is missing, not GGUF, or of an architecture that transformers does not read.
    """
    folder = cache_folder() / "models" / f"{file.stem}-{_digest(file)}"
    if folder.is_dir():
        return folder
    if find_spec("gguf") is None:
        raise ConfigError(f"model {file} needs the package gguf: pip install 'gumshoe-debug[train]'")
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _convert(file, fresh)
        fresh.chmod(0o755)
        fresh.rename(folder)
    except OSError:
        # Another process was faster. Its folder is as good as ours.
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            if opened.read(len(_MAGIC)) != _MAGIC:
                raise ConfigError(f"model {file} is not a GGUF file")
            opened.seek(0)
            return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    except OSError as error:
        raise ConfigError(f"model {file} cannot be read: {error.strerror or error}") from None


def _convert(file: Path, out: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder, name = str(file.parent), file.name
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # There is a progress bar that no setting turns off.
            model: Any = AutoModelForCausalLM.from_pretrained(
                folder, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    except (OSError, ValueError, LookupError, NotImplementedError, struct.error) as error:
        raise ConfigError(f"model {file} cannot be unpacked: {' '.join(str(error).split())[:200]}") from None
    # The weights are plain now; settings that say otherwise would have them quantized again when they are saved.
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer = None
    model.save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))
