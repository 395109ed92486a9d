import pytest

from ratelimit import Limiter
from ratelimit.replay import replay


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_clients_do_not_share_tokens(clock):
    limiter = Limiter(1, 1, clock)
    assert [limiter.allow("a"), limiter.allow("b"), limiter.allow("a")] == [True, True, False]
    assert limiter.denied == 1


def test_kinds_have_their_cost(clock):
    limiter = Limiter(5, 1, clock, costs={"export": 4})
    assert limiter.allow("a", "export")
    assert not limiter.allow("a", "export")
    assert limiter.allow("a")
    assert limiter.retry_after("a", "export") == 4.0
    assert limiter.retry_after("a") == 1.0


def test_idle_clients_are_forgotten(clock):
    limiter = Limiter(2, 1, clock, idle_after=30)
    limiter.allow("early")
    clock.now = 10.0
    limiter.allow("late")
    clock.now = 30.0
    assert limiter.forget_idle() == ["early"]
    assert limiter.forget_idle() == []
    clock.now = 300.0
    assert limiter.forget_idle() == ["late"]


def test_default_idle_time_is_five_minutes(clock):
    limiter = Limiter(2, 1, clock)
    limiter.allow("a")
    clock.now = 299.0
    assert limiter.forget_idle() == []
    clock.now = 300.0
    assert limiter.forget_idle() == ["a"]


def test_client_that_keeps_asking_is_served_at_the_rate(clock):
    limiter = Limiter(1, 1, clock)
    served = []
    for tick in range(17):
        clock.now = tick * 0.25
        if limiter.allow("poller"):
            served.append(clock.now)
    assert served == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_replay_of_a_log():
    log = [(2, "b", "get"), (0, "a", "get"), (0, "a", "get"), (0, "a", "put"), (6, "a", "put")]
    assert replay(log, capacity=2, rate=1, costs={"put": 2}) == ({"a": 3, "b": 1}, 1)
