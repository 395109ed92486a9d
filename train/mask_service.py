"""`python -m gumshoe.train.mask_service MODEL`: says which tokens of a conversation train, for programs that show it.

Reads one JSON object per line, with `messages` and perhaps `tools`; answers each with a line: `parts` as [text, kind,
tokens], `tokens` and `trained`, or `error`. Ends when its input ends.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, TextIO

from gumshoe.errors import GumshoeError

if TYPE_CHECKING:
    from gumshoe.train.render import Renderer

__all__ = ["answer_all", "main"]


def answer_all(model: str, questions: TextIO, answers: TextIO) -> None:
    """Answers every line of `questions`. If something is wrong with the model, that is the answer to each of them."""
    from gumshoe.train.model import load_tokenizer
    from gumshoe.train.render import Renderer
    from gumshoe.train.template import training_template

    renderer: Renderer | None = None
    problem = ""
    try:
        tokenizer = load_tokenizer(model, None)
        renderer = Renderer(tokenizer, training_template(tokenizer))
    except GumshoeError as error:
        problem = str(error)
    for question in questions:
        answer = {"error": problem} if renderer is None else _answer(renderer, json.loads(question))
        answers.write(f"{json.dumps(answer)}\n")
        answers.flush()


def main() -> int:
    """Answers standard input on standard output."""
    from gumshoe.train.commands.train import quieten

    quieten()
    answer_all(sys.argv[1], sys.stdin, sys.stdout)
    return 0


def _answer(renderer: Renderer, row: dict[str, Any]) -> dict[str, Any]:
    from gumshoe.train.render import spans
    from gumshoe.train.rows import checked_row

    try:
        rendered = renderer(checked_row(row, "this row"))
    except GumshoeError as error:
        return {"error": str(error)}
    return {
        "parts": [[renderer.decode(tokens), kind, len(tokens)] for kind, tokens in spans(rendered)],
        "tokens": len(rendered.input_ids),
        "trained": rendered.trained,
    }


if __name__ == "__main__":
    sys.exit(main())
