"""What trains of a row, to look at: on a terminal, and as JSON for programs that cannot import training.

`python -m gumshoe.train.masks MODEL` reads rows, one JSON object with `messages` and perhaps `tools` per line, and
answers each with a line that has

    parts       the row as [text, kind, tokens], cut where the kind changes (`trained`, `masked` or `read`)
    tokens      how many tokens it has, and `trained`, how many of them train
    input_ids   all tokens
    starts      the positions at which each assistant turn begins to train
    error       what is wrong with the row or the model, in place of all other keys

It ends when its input ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.text import Text

from gumshoe.errors import GumshoeError
from gumshoe.train.model import load_tokenizer, quieten, training_template
from gumshoe.train.rows.dataset import checked_row
from gumshoe.train.rows.render import Kind, Rendered, Renderer, spans, turn_starts

_STYLES: dict[Kind, str] = {"trained": "black on green", "masked": "black on yellow", "read": "dim"}


def mask_text(renderer: Renderer, row: Rendered) -> Text:
    """The row for a terminal: black on green where it trains, on yellow where that is masked out, dim elsewhere."""
    text = Text()
    for kind, tokens in spans(row):
        text.append(renderer.decode(tokens), style=_STYLES[kind])
    return text


def answer_rows(model: str, rows: Iterable[str], answers: TextIO) -> None:
    """Answers every line of `rows`. If something is wrong with the model, that is the answer to each of them."""
    renderer: Renderer | None = None
    problem = ""
    try:
        tokenizer = load_tokenizer(model, None)
        renderer = Renderer(tokenizer, training_template(tokenizer))
    except GumshoeError as error:
        problem = str(error)
    for line in rows:
        answer = {"error": problem} if renderer is None else _answer(renderer, json.loads(line))
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


def _answer(renderer: Renderer, row: dict[str, Any]) -> dict[str, Any]:
    try:
        rendered = renderer(checked_row(row, "this row"))
    except GumshoeError as error:
        return {"error": str(error)}
    return {
        "parts": [[renderer.decode(tokens), kind, len(tokens)] for kind, tokens in spans(rendered)],
        "tokens": len(rendered.input_ids),
        "trained": rendered.trained,
        "input_ids": rendered.input_ids,
        "starts": turn_starts(rendered),
    }


if __name__ == "__main__":
    quieten()
    answer_rows(sys.argv[1], sys.stdin, sys.stdout)
