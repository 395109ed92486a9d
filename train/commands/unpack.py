"""`gumshoe unpack`: a model as a folder that trains and serves, from a .gguf file, a folder or a hub id."""

from __future__ import annotations

import argparse
from pathlib import Path

from gumshoe.errors import ConfigError
from gumshoe.storage import check_model_files, new_folder
from gumshoe.train.model import check_tools, load_tokenizer, local_model, quieten, read_template

__all__ = ["configure", "run"]

EPILOG = """\
examples:
  gumshoe unpack SmolLM2-135M-Instruct.Q4_1.gguf --out models/smollm2 --chat-template hermes
  gumshoe unpack models/mine --out models/mine-with-tools --chat-template tools.jinja

Packed weights are dequantized to bfloat16. The folder contains links to the weights, which stay in the cache
($GUMSHOE_CACHE, or ~/.cache/gumshoe) or in their original folder.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.epilog = EPILOG
    parser.add_argument("model", help=".gguf file, model folder, or hub ID")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--chat-template", metavar="TEMPLATE", help="hermes, or a file (default: the model's own)")


def run(arguments: argparse.Namespace) -> int:
    """Writes the folder and prints where it is."""
    quieten()
    out: Path = arguments.out
    if out.exists() and (out.is_file() or any(out.iterdir())):
        raise ConfigError(f"--out: {out} already exists: choose another folder")
    source = _folder_of(local_model(arguments.model))
    check_model_files(source, error=ConfigError)
    tokenizer = load_tokenizer(str(source), None)
    if arguments.chat_template is not None:
        tokenizer.chat_template = read_template(arguments.chat_template)
    check_tools(tokenizer, str(tokenizer.chat_template or ""))
    try:
        with new_folder(out) as fresh:
            tokenizer.save_pretrained(str(fresh))
            for file in source.iterdir():
                if not (fresh / file.name).exists():
                    (fresh / file.name).symlink_to(file.resolve())
    except OSError as error:
        raise ConfigError(f"--out: {out} cannot be written: {error.strerror or error}") from None
    print(out)
    return 0


def _folder_of(model: str) -> Path:
    """The folder of a model, for a hub id that of the newest snapshot. Raises ConfigError."""
    if Path(model).is_dir():
        return Path(model)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model))
    except (OSError, ValueError) as error:
        raise ConfigError(f"model {model} cannot be loaded: {' '.join(str(error).split())[:200]}") from None
