"""Summaries of groups of rows."""


def values(rows, field):
    """Return the values of a field that are not null."""
    return [row[field] for row in rows if row.get(field) is not None]


def average(numbers):
    """Return the mean, None for no numbers."""
    return sum(numbers) / len(numbers) if numbers else None


SUMMARIES = {
    "sum": sum,
    "avg": average,
    "min": lambda numbers: min(numbers, default=None),
    "max": lambda numbers: max(numbers, default=None),
    "count": len,
}


def summarise(rows, key, **columns):
    """Return a row for each value of `key`, in the order of their first appearance.

    Args:
        rows: dictionaries.
        key: field to group by.
        columns: name of a new column = "summary(field)", such as total="sum(price)".
    """
    groups = {}
    for row in rows:
        groups.setdefault(row.get(key), []).append(row)
    result = []
    for value, members in groups.items():
        summary = {key: value}
        for name, text in columns.items():
            function, _, field = text.rstrip(")").partition("(")
            summary[name] = SUMMARIES[function](values(members, field))
        result.append(summary)
    return result
