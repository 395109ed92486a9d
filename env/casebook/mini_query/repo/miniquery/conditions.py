"""Conditions as text, such as "age >= 30" or "name = 'x'"."""

import operator
import re

COMPARISONS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
PATTERN = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.+?)\s*$")


def literal(text):
    """Return the value that `text` stands for: a quoted string, null, an int or a float.

    Raises:
        ValueError: it is none of them.
    """
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    if text == "null":
        return None
    return float(text) if "." in text else int(text)


def condition(text):
    """Return a function that tells whether a row meets the condition.

    A missing value is null. Null equals null; it is neither smaller nor larger than anything.

    Raises:
        ValueError: the text is not a condition.
    """
    match = PATTERN.match(text)
    if match is None:
        raise ValueError("not a condition: " + text)
    field, symbol, value = match.group(1), match.group(2), literal(match.group(3))

    def holds(row):
        actual = row.get(field)
        if symbol not in ("=", "!=") and (actual is None or value is None):
            return False
        return COMPARISONS[symbol](actual, value)

    return holds
