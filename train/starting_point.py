"""What a run begins with: the model as a folder or hub id, and its tokenizer with the template that is trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gumshoe.train.data import conversations
from gumshoe.train.gguf import is_gguf, unpack
from gumshoe.train.model import load_tokenizer
from gumshoe.train.render import Renderer
from gumshoe.train.template import check_tools, read_template, training_template
from gumshoe.train.trainer_config import RowsConfig, TrainerConfig

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

__all__ = ["local_model", "open_renderer", "starting_tokenizer"]


def local_model(model: str) -> str:
    """The folder or hub id that transformers loads `model` from; a `.gguf` file is unpacked. Raises ConfigError."""
    return str(unpack(Path(model).expanduser())) if is_gguf(model) else model


def starting_tokenizer(config: TrainerConfig) -> PreTrainedTokenizerBase:
    """The tokenizer of the config's model, with the config's chat template or the model's own. Raises ConfigError."""
    tokenizer = load_tokenizer(local_model(config.model), config.revision)
    if config.chat_template is not None:
        tokenizer.chat_template = read_template(config.chat_template)
    return tokenizer


def open_renderer(config: RowsConfig, rows: Dataset) -> Renderer:
    """Renders rows for the config's model, with the config's chat template or the model's own.

    Raises:
        ConfigError: the model or the template cannot be read, or the rows have tools and the template leaves them out.
    """
    tokenizer = starting_tokenizer(config)
    own = tokenizer.chat_template
    if isinstance(own, str) and any(row.get("tools") for row in conversations(rows.select(range(min(1, len(rows)))))):
        check_tools(tokenizer, own)
    return Renderer(tokenizer, training_template(tokenizer))
