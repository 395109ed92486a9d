"""Hook of MkDocs: fills the pages of commands and configs from the parsers and models themselves."""

from __future__ import annotations

import os
from typing import Any

from gumshoe.cli import COMMANDS, make_parser
from gumshoe.commands.config import CONFIGS, as_markdown, config_keys, config_model

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
    tables = ((name, as_markdown(config_keys(config_model(name)))) for name in CONFIGS)
    return "\n".join(f"## {name}\n\n{table}\n" for name, table in tables)
