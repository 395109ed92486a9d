"""Spans of time: from a start up to, not including, an end."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, order=True)
class Span:
    """Start and end are aware datetimes."""

    start: datetime
    end: datetime

    def __post_init__(self):
        if self.end <= self.start:
            raise ValueError("a span must end after it starts")

    @property
    def length(self):
        """The duration as timedelta."""
        return self.end - self.start

    def overlaps(self, other):
        """Tell whether the spans share any time; touching is not enough."""
        return self.start < other.end and other.start < self.end

    def clip(self, start, end):
        """Return the part between `start` and `end`, None when there is none."""
        first, last = max(self.start, start), min(self.end, end)
        return Span(first, last) if first < last else None


def merge(spans):
    """Return the spans in order, with those that overlap or touch joined."""
    merged = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged


def gaps(spans, start, end, shortest=timedelta(0)):
    """Return the free spans between `start` and `end` that last at least `shortest`."""
    free = []
    cursor = start
    for span in merge(spans):
        if span.start > cursor:
            free.append((cursor, min(span.start, end)))
        cursor = max(cursor, span.end)
        if cursor >= end:
            break
    if cursor < end:
        free.append((cursor, end))
    return [Span(first, last) for first, last in free if last - first >= shortest]
