"""The mask of a row, to look at: what trains is coloured, everything else is only read."""

from __future__ import annotations

import html
from collections.abc import Iterable

from rich.text import Text

from gumshoe.train.render import Rendered, Renderer, spans

__all__ = ["mask_html", "mask_text"]

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What trains</title>
<style>
  :root {{ color-scheme: light dark; --trains: light-dark(#c9f0d0, #14532d); --read: light-dark(#667085, #98a2b3); }}
  body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; color: var(--read); font: 13px/1.5 ui-monospace, monospace; }}
  mark {{ background: var(--trains); color: CanvasText; }}
  summary {{ cursor: pointer; font-weight: 600; margin-top: 1rem; }}
</style>
<h1>What trains</h1>
<p><mark>Coloured</mark> text trains. The rest is only read. {note}</p>
{rows}
</html>
"""


def mask_text(renderer: Renderer, row: Rendered) -> Text:
    """The row for a terminal: black on green where it trains, dim elsewhere."""
    text = Text()
    for trains, tokens in spans(row):
        text.append(renderer.decode(tokens), style="black on green" if trains else "dim")
    return text


def mask_html(renderer: Renderer, rows: Iterable[tuple[str, Rendered]], note: str) -> str:
    """A page with the rows (name, row), each in a fold of its own, the first one open.

    Args:
        renderer: what rendered them.
        rows: what to show.
        note: a sentence in front of them.
    """
    parts: list[str] = []
    for name, row in rows:
        body = "".join(
            f"<mark>{html.escape(renderer.decode(tokens))}</mark>" if trains else html.escape(renderer.decode(tokens))
            for trains, tokens in spans(row)
        )
        title = f"{html.escape(name)}: {row.trained} of {len(row.input_ids)} tokens train"
        parts.append(f"<details{'' if parts else ' open'}><summary>{title}</summary><pre>{body}</pre></details>")
    return _PAGE.format(note=html.escape(note), rows="\n".join(parts))
