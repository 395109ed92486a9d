from datetime import date, datetime, time, timedelta, timezone

import pytest

from agenda.calendar import Calendar, common_slots
from agenda.spans import Span, gaps, merge

UTC = timezone.utc
EAST = timezone(timedelta(hours=9))
WEST = timezone(timedelta(hours=-8))
DAY = date(2024, 5, 6)


def at(hour, minute=0, day=6, zone=UTC):
    return datetime(2024, 5, day, hour, minute, tzinfo=zone)


def span(start, end):
    return Span(at(start), at(end))


def hours(spans):
    return [(item.start.hour, item.end.hour) for item in spans]


def test_span_must_have_a_length():
    for end in (3, 2):
        with pytest.raises(ValueError, match="must end after"):
            span(3, end)
    assert span(3, 5).length == timedelta(hours=2)


def test_overlap():
    assert span(1, 3).overlaps(span(2, 4))
    assert not span(1, 3).overlaps(span(3, 4))
    assert not span(3, 4).overlaps(span(1, 3))


def test_clip():
    assert span(1, 5).clip(at(2), at(9)) == span(2, 5)
    assert span(1, 5).clip(at(0), at(4)) == span(1, 4)
    assert span(1, 5).clip(at(5), at(9)) is None


def test_merge():
    assert hours(merge([span(6, 7), span(1, 4), span(2, 3), span(4, 5)])) == [(1, 5), (6, 7)]


def test_gaps():
    busy = [span(8, 10), span(12, 13), span(16, 19)]
    assert hours(gaps(busy, at(9), at(17))) == [(10, 12), (13, 16)]
    assert hours(gaps(busy, at(9), at(17), timedelta(hours=3))) == [(13, 16)]
    assert hours(gaps([], at(9), at(17))) == [(9, 17)]
    assert hours(gaps([span(18, 19)], at(9), at(17))) == [(9, 17)]
    assert hours(gaps([span(9, 10), span(16, 17)], at(9), at(17))) == [(10, 16)]


def test_double_booking_is_refused():
    calendar = Calendar()
    calendar.book(at(10), 60)
    calendar.book(at(11), 30)
    with pytest.raises(ValueError, match="busy at 2024-05-06 10:59"):
        calendar.book(at(10, 59), 1)


def test_start_without_zone_is_local():
    calendar = Calendar(zone=EAST)
    assert calendar.book(datetime(2024, 5, 6, 10), 30).start == at(1)
    assert calendar.book(at(5), 30).start == at(5)


def test_free_in_working_hours():
    calendar = Calendar()
    calendar.book(at(8), 90)
    calendar.book(at(12), 60)
    assert [(slot.start, slot.end) for slot in calendar.free(DAY)] == [(at(9, 30), at(12)), (at(13), at(17))]
    assert hours(calendar.free(DAY, minutes=180)) == [(13, 17)]


def test_free_in_local_hours():
    calendar = Calendar(zone=WEST, opens=time(8), closes=time(10))
    assert calendar.free(DAY) == [Span(at(16), at(18))]


def test_busy_minutes_of_a_day():
    calendar = Calendar()
    calendar.book(at(23), 120)
    calendar.book(at(9), 45)
    assert calendar.busy_minutes(DAY) == 105
    assert calendar.busy_minutes(date(2024, 5, 7)) == 60
    assert calendar.busy_minutes(date(2024, 5, 8)) == 0


def test_busy_minutes_of_a_local_day():
    calendar = Calendar(zone=EAST)
    calendar.book(datetime(2024, 5, 6, 8), 30)
    calendar.book(datetime(2024, 5, 6, 20), 60)
    assert calendar.busy_minutes(date(2024, 5, 5)) == 0
    assert calendar.busy_minutes(DAY) == 90


def test_common_slots():
    here, there = Calendar(), Calendar(zone=timezone(timedelta(hours=3)))
    here.book(at(10), 60)
    assert common_slots([here, there], DAY, 60) == [at(9), at(11)]
    assert common_slots([here, there], DAY, 61) == [at(11)]
    assert common_slots([here, Calendar(zone=WEST)], DAY, 30) == []
    assert common_slots([there], DAY, 60) == [at(6)]
