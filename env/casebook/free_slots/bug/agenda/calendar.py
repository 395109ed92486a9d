"""The calendar of one person, who works in one time zone."""

from datetime import datetime, time, timedelta, timezone

from .spans import Span, gaps, merge


class Calendar:
    """Busy times of a person.

    Args:
        zone: tzinfo the person lives in.
        opens: local time at which the working day begins.
        closes: local time at which it ends.
    """

    def __init__(self, zone=timezone.utc, opens=time(9), closes=time(17)):
        self.zone = zone
        self.opens = opens
        self.closes = closes
        self._busy = []

    def book(self, start, minutes):
        """Enter a meeting; a start without time zone is local.

        Raises:
            ValueError: the person is busy then.
        """
        begin = start if start.tzinfo is not None else start.replace(tzinfo=self.zone)
        span = Span(begin, begin + timedelta(minutes=minutes))
        if any(span.overlaps(other) for other in self._busy):
            raise ValueError("busy at {:%Y-%m-%d %H:%M}".format(begin))
        self._busy.append(span)
        return span

    def day_bounds(self, day):
        """Return the first moment of the local day `day`, and that of the next day."""
        first = datetime.combine(day, time.min, tzinfo=timezone.utc)
        return first, first + timedelta(days=1)

    def busy_minutes(self, day):
        """Return the minutes of the local day that are taken by meetings."""
        first, last = self.day_bounds(day)
        parts = [span.clip(first, last) for span in merge(self._busy)]
        return sum(part.length // timedelta(minutes=1) for part in parts if part is not None)

    def free(self, day, minutes=0):
        """Return the free spans of at least `minutes` in the working hours of the local day."""
        opening = datetime.combine(day, self.opens, tzinfo=self.zone)
        closing = datetime.combine(day, self.closes, tzinfo=self.zone)
        return gaps(self._busy, opening, closing, timedelta(minutes=minutes))


def common_slots(calendars, day, minutes):
    """Return the starts (UTC) of the spans of at least `minutes` in which everybody is free and at work.

    `day` is the local day of each calendar.
    """
    slots = calendars[0].free(day)
    for calendar in calendars[1:]:
        both = [slot.clip(other.start, other.end) for slot in slots for other in calendar.free(day)]
        slots = [slot for slot in both if slot is not None]
    wanted = timedelta(minutes=minutes)
    return [slot.start.astimezone(timezone.utc) for slot in slots if slot.length >= wanted]
