"""A model folder: checked before a server is started on it, and laid out for `transformers serve`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from gumshoe.errors import ServeError
from gumshoe.storage import check_model_files

__all__ = ["check_model_folder", "is_in_bfloat16", "lay_out_for_transformers"]

_TOOLS = re.compile(r"\btools\b")


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
