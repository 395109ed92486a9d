import pytest

from ratelimit import TokenBucket


def test_starts_full_and_empties():
    bucket = TokenBucket(2, rate=1)
    assert [bucket.take(0), bucket.take(0), bucket.take(0)] == [True, True, False]


def test_refills_with_time_but_not_beyond_capacity():
    bucket = TokenBucket(4, rate=2)
    bucket.take(0, 4)
    assert bucket.available(1) == 2
    assert bucket.available(100) == 4


def test_time_of_creation_counts():
    bucket = TokenBucket(5, rate=1, now=10)
    bucket.take(10, 5)
    assert bucket.available(12) == 2


def test_wait_time():
    bucket = TokenBucket(4, rate=2)
    assert bucket.wait_time(0) == 0.0
    bucket.take(0, 4)
    assert bucket.wait_time(0, 3) == 1.5
    assert bucket.wait_time(0, 4) == 2.0
    assert bucket.wait_time(0, 5) is None
    assert bucket.wait_time(0) == 0.5
    assert bucket.wait_time(1.5, 4) == 0.5


def test_clock_that_goes_back_changes_nothing():
    bucket = TokenBucket(3, rate=1)
    bucket.take(5, 3)
    assert bucket.available(4) == 0
    assert bucket.available(6) == 1


def test_bad_settings():
    for capacity, rate in [(0, 1), (1, 0), (-1, 1), (1, -1)]:
        with pytest.raises(ValueError, match="must be positive"):
            TokenBucket(capacity, rate)
