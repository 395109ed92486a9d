"""Turn values into the text of cells, and text into lines of limited width."""


def cell_text(value, digits=2):
    """Return the text of a value: nothing for None, `digits` decimals for floats, pipes escaped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "{:.{}f}".format(value, digits)
    return str(value).replace("|", "\\|")


def is_number(value):
    """Tell whether a column of such values is aligned to the right."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def wrap(text, width):
    """Split `text` into lines of at most `width` characters, at spaces; longer words are cut."""
    lines = []
    current = ""
    for word in text.split():
        while len(word) > width:
            if current:
                lines.append(current)
                current = ""
            lines.append(word[:width])
            word = word[width:]
        joined = current + " " + word if current else word
        if len(joined) <= width:
            current = joined
        else:
            lines.append(current)
            current = word
    if current or not lines:
        lines.append(current)
    return lines
