"""The console that commands print tables, colors and progress on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import rich.console
from rich.segment import Segment
from rich.text import Text

from gumshoe.text import visible


class Console(rich.console.Console):  # noqa: TID251
    """Rich's console, which passes on no control character of a text, and takes no text for markup.

    Names, statements and output from outside are printed on it.
    """

    def __init__(self, **options: Any) -> None:
        literal: dict[str, Any] = {"markup": False, "emoji": False}
        super().__init__(**(literal | options))

    @property
    def file(self) -> IO[str]:
        """Where it prints: behind what Rich and `screened_streams` put in front of a standard stream."""
        file: Any = super().file
        while hasattr(file, "rich_proxied_file"):
            file = file.rich_proxied_file
        return file

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **options: Any) -> Text:
        """A string as it is printed, and measured."""
        return super().render_str(visible(text), **options)

    def render(
        self, renderable: rich.console.RenderableType, options: rich.console.ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The parts of `renderable`; what moves the cursor is Rich's own."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))
