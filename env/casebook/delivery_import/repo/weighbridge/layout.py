"""Split lines into fields."""

import csv

FIELDS = ("date", "article", "amount", "unit")


def from_csv(lines):
    """Yield a dictionary of stripped texts for each record of a CSV file with a header line."""
    for record in csv.DictReader(lines):
        yield {name: (record.get(name) or "").strip() for name in FIELDS}


def from_fixed_width(lines, widths=(10, 12, 10, 4)):
    """Yield a dictionary of stripped texts for each line, cut into columns of `widths` characters."""
    for line in lines:
        fields = {}
        start = 0
        for name, width in zip(FIELDS, widths):
            fields[name] = line[start : start + width].strip()
            start += width
        if any(fields.values()):
            yield fields
