"""Hook of MkDocs: fills the pages of commands and configs from the parsers and models themselves."""

from __future__ import annotations

import os
from typing import Any

from gumshoe.cli import COMMANDS, make_parser
from gumshoe.commands.config import CONFIGS, Key, config_keys, config_model

WIDTH = "100"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The page with its markers replaced."""
    for marker, write in (("<!-- commands -->", _commands), ("<!-- configs -->", _configs)):
        if marker in markdown:
            markdown = markdown.replace(marker, write())
    return markdown


def _commands() -> str:
    os.environ["COLUMNS"] = WIDTH  # What argparse wraps at.
    (subparsers,) = make_parser(COMMANDS)._subparsers._group_actions
    return "\n".join(f"## {name}\n\n```text\n{subparsers.choices[name].format_help()}```\n" for name in COMMANDS)


def _configs() -> str:
    return "\n".join(f"## {name}\n\n{_table(config_keys(config_model(name)))}\n" for name in CONFIGS)


def _table(keys: list[Key]) -> str:
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for key in keys:
        meaning = f"{key.description} (`{key.when}`)" if key.when else key.description
        cells = (f"`{key.name}`", key.type, f"`{key.default}`" if key.default else "", meaning)
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)
