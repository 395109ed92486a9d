import pytest

from rolling.alarm import Alarm, alarms, quiet_share, score
from rolling.smooth import downsample, exponential, moving_average
from rolling.window import RollingWindow


def filled(values, size):
    window = RollingWindow(size)
    for value in values:
        window.add(value)
    return window


def test_empty_window():
    window = RollingWindow(2)
    assert (len(window), window.mean(), window.deviation()) == (0, 0.0, 0.0)
    assert not window.full
    with pytest.raises(ValueError):
        window.extremes()


def test_size_must_be_two_or_more():
    with pytest.raises(ValueError, match="at least 2"):
        RollingWindow(1)


def test_partly_filled_window():
    window = filled([1, 3], 4)
    assert window.mean() == 2.0
    assert window.deviation() == pytest.approx(2**0.5)
    assert filled([7], 4).deviation() == 0.0


def test_oldest_value_leaves():
    window = filled([9, 1, 2, 6], 3)
    assert (len(window), window.mean()) == (3, 3.0)
    assert window.extremes() == (1, 6)


def test_deviation_of_a_full_window():
    assert filled([2, 4, 6, 8], 4).deviation() == pytest.approx((20 / 3) ** 0.5)


def test_moving_average():
    assert list(moving_average([1, 2, 3, 4, 8], 3)) == [2.0, 3.0, 5.0]
    assert list(moving_average([1, 2], 3)) == []


def test_exponential():
    assert list(exponential([4, 8, 0])) == [4, 6.0, 3.0]
    assert list(exponential([4, 8], weight=0.25)) == [4, 5.0]
    assert list(exponential([4, 8], weight=1)) == [4, 8]
    for weight in (0, 1.5):
        with pytest.raises(ValueError, match="weight"):
            list(exponential([1], weight))


def test_downsample():
    assert list(downsample([1, 3, 5, 7, 9], 2)) == [2.0, 6.0, 9.0]
    assert list(downsample([1, 3], 2)) == [2.0]
    assert list(downsample([1, 3, 5], 4)) == [3.0]


def test_score_counts_deviations():
    assert score(8, filled([2, 4, 6], 3)) == 2.0
    assert score(0, filled([2, 4, 6], 3)) == -2.0
    assert score(9, filled([5, 5, 5], 3)) == 0.0


def test_alarm_right_after_the_first_window():
    assert alarms([2, 4, 6, 10], size=3) == [Alarm(3, 10, 3.0)]
    assert alarms([2, 4, 6, 9.9], size=3) == []
    assert alarms([2, 4, 6, -2], size=3) == [Alarm(3, -2, -3.0)]


def test_alarm_late_in_the_stream():
    quiet = [10, 12, 11, 12, 10, 11, 9, 10, 11, 9]
    raised = alarms(quiet + [19, 10, 1], size=5)
    assert [alarm.index for alarm in raised] == [10, 12]
    assert raised[0].score == pytest.approx(9.0)


def test_default_window_is_five_values():
    assert alarms([1, 2, 3, 2, 90]) == []
    assert [alarm.index for alarm in alarms([1, 2, 3, 2, 1, 90])] == [5]


def test_quiet_share():
    assert quiet_share([]) == 1.0
    assert quiet_share(iter([2, 4, 6, 99]), size=3) == 0.75
    assert quiet_share([1, 2, 3, 2, 1, 90, 1, 2]) == 0.875
