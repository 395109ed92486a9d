import pytest

from resilience.backoff import Backoff
from resilience.breaker import CLOSED, HALF_OPEN, OPEN, Breaker
from resilience.client import Client, Unavailable


class World:
    """A clock that sleeping moves, and a service that fails a number of times."""

    def __init__(self):
        self.now = 100.0
        self.slept = []
        self.failures = 0
        self.calls = 0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def service(self, text="ok"):
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("down")
        return text


@pytest.fixture
def world():
    return World()


@pytest.fixture
def breaker(world):
    return Breaker(world.clock, limit=2, cooldown=30)


def test_waits_grow_up_to_the_longest():
    assert list(Backoff(first=1, factor=3, longest=10, retries=4).waits()) == [1, 3, 9, 10]
    assert Backoff().total() == 0.5 + 1.0 + 2.0
    assert list(Backoff(longest=0.75).waits()) == [0.5, 0.75, 0.75]
    assert max(Backoff(retries=9).waits()) == 10.0


def test_breaker_opens_after_failures_in_a_row(breaker):
    breaker.failed()
    assert breaker.state == CLOSED
    breaker.succeeded()
    breaker.failed()
    assert breaker.allows()
    breaker.failed()
    assert breaker.state == OPEN
    assert not breaker.allows()
    assert breaker.trips == 1


def test_breaker_is_half_open_after_the_cooldown(breaker, world):
    breaker.failed()
    breaker.failed()
    world.now = 129.0
    assert breaker.state == OPEN
    world.now = 130.0
    assert breaker.state == HALF_OPEN


def test_only_one_probe_is_let_through(breaker, world):
    breaker.failed()
    breaker.failed()
    world.now = 131.0
    assert [breaker.allows(), breaker.allows()] == [True, False]
    breaker.succeeded()
    assert breaker.state == CLOSED
    assert [breaker.allows(), breaker.allows()] == [True, True]


def test_failed_probe_starts_a_new_cooldown(breaker, world):
    breaker.failed()
    breaker.failed()
    world.now = 140.0
    assert breaker.allows()
    breaker.failed()
    assert breaker.trips == 2
    world.now = 169.0
    assert not breaker.allows()
    world.now = 170.0
    assert breaker.allows()


def test_defaults_of_the_breaker(world):
    breaker = Breaker(world.clock)
    for _ in range(2):
        breaker.failed()
    assert breaker.state == CLOSED
    breaker.failed()
    world.now = 129.0
    assert breaker.state == OPEN
    world.now = 130.0
    assert breaker.state == HALF_OPEN


def test_client_retries_until_it_works(breaker, world):
    world.failures = 1
    client = Client(breaker, Backoff(first=1), world.sleep)
    assert client.call(world.service, "hi") == "hi"
    assert (client.attempts, world.slept) == (2, [1])
    assert breaker.state == CLOSED


def test_client_gives_up(world):
    world.failures = 9
    client = Client(Breaker(world.clock, limit=5), Backoff(first=1, retries=2), world.sleep)
    with pytest.raises(Unavailable, match="all attempts failed"):
        client.call(world.service)
    assert (world.calls, world.slept) == (3, [1, 2.0])


def test_client_stops_when_the_breaker_opens(breaker, world):
    world.failures = 9
    client = Client(breaker, sleep=world.sleep)
    with pytest.raises(Unavailable, match="the breaker is open"):
        client.call(world.service)
    assert client.attempts == 2


def test_each_call_starts_with_the_first_wait(world):
    world.failures = 1
    client = Client(Breaker(world.clock), Backoff(first=1), world.sleep)
    client.call(world.service)
    world.calls = 0
    client.call(world.service)
    assert world.slept == [1, 1]
    world.calls = 0
    client.call(world.service)
    assert world.slept == [1, 1, 1]


def test_service_that_is_down_is_probed_once_per_cooldown(breaker, world):
    world.failures = 99
    client = Client(breaker, Backoff(retries=0))
    for second in range(100, 200):
        world.now = float(second)
        with pytest.raises(Unavailable):
            client.call(world.service)
    assert world.calls == 5


def test_other_errors_pass_through(breaker):
    client = Client(breaker)
    with pytest.raises(ZeroDivisionError):
        client.call(lambda: 1 // 0)
    assert breaker.state == CLOSED
