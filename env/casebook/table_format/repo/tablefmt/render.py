"""Draw rows as a table."""

from dataclasses import dataclass

from .cells import cell_text, is_number, wrap


@dataclass
class Column:
    """How one column is drawn; `width` is in characters."""

    title: str
    width: int
    right: bool

    def pad(self, text):
        """Fill `text` up to the width of the column."""
        return text.rjust(self.width) if self.right else text.ljust(self.width)

    def rule(self):
        """Return the dashes below the title; a colon marks alignment to the right."""
        return "-" * (self.width - 1) + ":" if self.right else "-" * self.width


def measure(titles, rows, max_width):
    """Return the columns for `rows`: wide enough for the content, at most `max_width`.

    A column is aligned to the right when it has values and all of them are numbers.
    """
    widths = [max(3, len(title)) for title in titles]
    numeric = [True] * len(titles)
    filled = [False] * len(titles)
    for row in rows:
        for index, value in enumerate(row):
            widths[index] = max(widths[index], len(cell_text(value)))
            if value is not None:
                filled[index] = True
                numeric[index] = numeric[index] and is_number(value)
    return [
        Column(title, min(width, max_width), right and some)
        for title, width, right, some in zip(titles, widths, numeric, filled)
    ]


def draw_row(columns, texts):
    """Return the lines of one row; cells that are too long continue on the next line."""
    cells = [wrap(text, column.width) for column, text in zip(columns, texts)]
    height = max(len(lines) for lines in cells)
    drawn = []
    for level in range(height):
        parts = [lines[level] if level < len(lines) else "" for lines in cells]
        drawn.append("| " + " | ".join(column.pad(part) for column, part in zip(columns, parts)) + " |")
    return drawn


def render(titles, rows, max_width=30):
    """Return a Markdown table.

    Raises:
        ValueError: there are no columns.
    """
    if not titles:
        raise ValueError("a table needs a column")
    columns = measure(titles, rows, max_width)
    lines = draw_row(columns, titles)
    lines.append("| " + " | ".join(column.rule() for column in columns) + " |")
    for row in rows:
        lines.extend(draw_row(columns, [cell_text(value) for value in row]))
    return "\n".join(lines)
