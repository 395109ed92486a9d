"""The files of a model folder: whether they are all there, and what the JSON among them says."""

from __future__ import annotations

from pathlib import Path

from gumshoe.errors import GumshoeError
from gumshoe.storage import MAX_JSON_BYTES, parse_json, read_bounded

__all__ = ["check_model_files"]

_PARTS = {
    "config.json": ("config.json",),
    "tokenizer": ("tokenizer.json", "tokenizer.model", "vocab.json"),
    "weights": ("*.safetensors", "*.bin"),
}
_OBJECTS = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def check_model_files(folder: Path, *, error: type[GumshoeError]) -> None:
    """Raises `error` unless `folder` holds a model's config, tokenizer and weights, and its JSON files hold objects."""
    for what, patterns in _PARTS.items():
        if not any(next(folder.glob(pattern), None) for pattern in patterns):
            raise error(f"{folder} is not a model folder: it holds no {what}")
    for name in _OBJECTS:
        _refuse_damaged(folder / name, error=error)


def _refuse_damaged(file: Path, *, error: type[GumshoeError]) -> None:
    """Raises `error` if there is such a file and it holds anything but a JSON object."""
    if not file.exists():
        return
    try:
        found = parse_json(read_bounded(file, MAX_JSON_BYTES, error=error))
    except ValueError as why:
        raise error(f"{file} cannot be read: it is not JSON: {why}") from None
    if not isinstance(found, dict):
        raise error(f"{file} cannot be read: it does not hold a JSON object")
