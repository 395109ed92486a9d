"""The mask of a row, to look at: green trains, yellow was a mistake and is masked out, everything else is only read."""

from __future__ import annotations

import html
from collections.abc import Iterable

from rich.text import Text

from gumshoe.train.render import Kind, Rendered, Renderer, spans

__all__ = ["mask_html", "mask_text"]

_STYLES: dict[Kind, str] = {"trained": "black on green", "masked": "black on yellow", "read": "dim"}
_MARKED: dict[Kind, str] = {"trained": "<mark>{}</mark>", "masked": '<mark class="masked">{}</mark>', "read": "{}"}

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What trains</title>
<style>
  :root {{ color-scheme: light dark; --trains: light-dark(#c9f0d0, #14532d);
    --masked: light-dark(#fde68a, #713f12); --read: light-dark(#667085, #98a2b3); }}
  body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; color: var(--read); font: 13px/1.5 ui-monospace, monospace; }}
  mark {{ background: var(--trains); color: CanvasText; }}
  mark.masked {{ background: var(--masked); }}
  summary {{ cursor: pointer; font-weight: 600; margin-top: 1rem; }}
</style>
<h1>What trains</h1>
<p><mark>Green</mark> text trains. <mark class="masked">Yellow</mark> text was a mistake: masked out, and only
read, like the rest. {note}</p>
{rows}
</html>
"""


def mask_text(renderer: Renderer, row: Rendered) -> Text:
    """The row for a terminal: black on green where it trains, on yellow where that is masked out, dim elsewhere."""
    text = Text()
    for kind, tokens in spans(row):
        text.append(renderer.decode(tokens), style=_STYLES[kind])
    return text


def mask_html(renderer: Renderer, rows: Iterable[tuple[str, Rendered]], note: str) -> str:
    """A page with the rows (name, row), each in a collapsible section of its own, the first one open.

    Args:
        renderer: what rendered them.
        rows: what to show.
        note: a sentence in front of them.
    """
    parts: list[str] = []
    for name, row in rows:
        body = "".join(_MARKED[kind].format(html.escape(renderer.decode(tokens))) for kind, tokens in spans(row))
        title = f"{html.escape(name)}: {row.trained} of {len(row.input_ids)} tokens train"
        parts.append(f"<details{'' if parts else ' open'}><summary>{title}</summary><pre>{body}</pre></details>")
    return _PAGE.format(note=html.escape(note), rows="\n".join(parts))
