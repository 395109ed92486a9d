"""Plain-text tables in Markdown form."""

from .records import records_table
from .render import render

__all__ = ["records_table", "render"]
