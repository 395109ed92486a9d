import pytest

from eventsim import Simulator
from eventsim.station import Station


@pytest.fixture
def sim():
    return Simulator()


def test_events_run_in_order_of_time(sim):
    seen = []
    sim.at(3, lambda: seen.append(("c", sim.now)))
    sim.at(1, lambda: seen.append(("a", sim.now)))
    sim.after(2, lambda: seen.append(("b", sim.now)))
    assert sim.run(10) == 3
    assert seen == [("a", 1), ("b", 2), ("c", 3)]
    assert sim.now == 10


def test_ties_go_by_priority_then_age(sim):
    seen = []
    for name, priority in [("x", 1), ("y", 0), ("z", 1), ("w", 0)]:
        sim.at(5, lambda name=name: seen.append(name), priority)
    sim.run(6)
    assert seen == ["y", "w", "x", "z"]


def test_priority_is_zero_by_default(sim):
    seen = []
    sim.at(1, lambda: seen.append("low"), priority=1)
    sim.at(1, lambda: seen.append("at"))
    sim.after(1, lambda: seen.append("after"))
    sim.at(1, lambda: seen.append("high"), priority=-1)
    sim.run(2)
    assert seen == ["high", "at", "after", "low"]


def test_end_is_not_included(sim):
    sim.at(2, lambda: None)
    assert sim.run(2) == 0
    assert sim.pending() == 1
    assert sim.run(2.5) == 1
    assert (sim.pending(), sim.executed) == (0, 1)
    assert sim.run(9) == 0


def test_events_may_schedule_events(sim):
    seen = []
    sim.at(1, lambda: sim.after(1, lambda: seen.append(sim.now)))
    sim.run(5)
    assert seen == [2]


def test_the_past_is_refused(sim):
    sim.run(4)
    with pytest.raises(ValueError, match="3 is before now"):
        sim.at(3, lambda: None)
    assert sim.at(4, lambda: None).time == 4


def test_cancelled_events_do_not_run(sim):
    seen = []
    event = sim.at(1, lambda: seen.append("no"))
    sim.at(1, lambda: seen.append("yes"))
    event.cancelled = True
    assert sim.pending() == 1
    assert sim.run(2) == 1
    assert seen == ["yes"]


def test_ticker_repeats_until_stopped(sim):
    seen = []
    ticker = sim.every(2, lambda: seen.append(sim.now), start=1)
    sim.run(6)
    ticker.stop()
    sim.run(20)
    assert seen == [1, 3, 5]
    assert ticker.ticks == 3


def test_ticker_starts_now(sim):
    seen = []
    sim.run(4)
    sim.every(0.5, lambda: seen.append(sim.now))
    sim.run(5)
    assert seen == [4, 4.5]


def test_period_must_be_positive(sim):
    for period in (0, -1):
        with pytest.raises(ValueError, match="period must be positive"):
            sim.every(period, lambda: None)


def test_sampling_ten_times_a_second(sim):
    ticker = sim.every(0.1, lambda: None)
    sim.run(1.0)
    assert ticker.ticks == 10


def test_station_measures_waits(sim):
    station = Station(sim, service_time=3)
    assert station.mean_wait() == 0.0
    for time in (0, 1, 2):
        sim.at(time, station.arrive)
    sim.run(100)
    assert station.waits == [0, 2, 4]
    assert station.mean_wait() == 2.0
    assert (station.served, station.rejected) == (3, 0)


def test_station_turns_jobs_away_when_full(sim):
    station = Station(sim, service_time=10, room=2)
    for _ in range(5):
        station.arrive()
    assert station.rejected == 2
    sim.run(30.5)
    assert station.served == 3


def test_default_room_is_ten(sim):
    station = Station(sim, service_time=1)
    for _ in range(12):
        station.arrive()
    assert station.rejected == 1
