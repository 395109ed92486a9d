"""Tables of dictionaries."""

from .render import render


def field_names(records):
    """Return all keys of `records`, in the order they are first seen."""
    names = []
    for record in records:
        names.extend(key for key in record if key not in names)
    return names


def as_rows(records, fields):
    """Return a row for each record, None where it lacks a field."""
    return [[record.get(name) for name in fields] for record in records]


def with_total(rows, label="total"):
    """Return `rows` and a last row with the sum of each column of numbers, `label` in the first column."""
    body = list(rows)
    sums = [label]
    for column in list(zip(*body))[1:]:
        values = [value for value in column if value is not None]
        sums.append(sum(values) if values and not any(isinstance(value, str) for value in values) else None)
    return body + [sums]


def records_table(records, fields=None, total=False, max_width=30):
    """Return a table with a column for each of `fields`, or for all fields that occur."""
    names = field_names(records) if fields is None else list(fields)
    rows = as_rows(records, names)
    if total and records:
        rows = with_total(rows)
    titles = [name.replace("_", " ") for name in names]
    return render(titles, rows, max_width)
