"""Renders conversations as training does, for programs that cannot import training.

    python -m gumshoe.train.rendering MODEL < rows.jsonl

A line of input is a row with `messages` and perhaps `tools`; the line of output that answers it has `input_ids`, and
`starts`: the positions at which each assistant turn begins to train, which is where a server has to hand over to the
model.
"""

from __future__ import annotations

import json
import sys

from gumshoe.train.model import load_tokenizer
from gumshoe.train.render import UNTRAINED, Rendered, Renderer
from gumshoe.train.template import training_template

__all__ = ["main", "turn_starts"]


def turn_starts(rendered: Rendered) -> list[int]:
    """The positions at which training starts."""
    trains = [label != UNTRAINED for label in rendered.labels]
    return [index for index, now in enumerate(trains) if now and not (index and trains[index - 1])]


def main(model: str) -> None:
    """Answers standard input line by line."""
    tokenizer = load_tokenizer(model, None)
    renderer = Renderer(tokenizer, training_template(tokenizer))
    for line in sys.stdin:
        rendered = renderer(json.loads(line))
        print(json.dumps({"input_ids": rendered.input_ids, "starts": turn_starts(rendered)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
