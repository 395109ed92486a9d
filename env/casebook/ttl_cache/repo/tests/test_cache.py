import pytest

from ttlcache import ExpiringCache


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(clock):
    return ExpiringCache(capacity=2, ttl=10, clock=clock)


def test_entry_is_valid_until_its_ttl(cache, clock):
    cache.put("a", 1)
    clock.now = 9.9
    assert cache.get("a") == 1
    clock.now = 10.0
    assert cache.get("a") is None
    assert len(cache) == 0
    assert (cache.hits, cache.misses) == (1, 1)


def test_own_ttl_of_an_entry_wins(cache, clock):
    cache.put("a", 1, ttl=3)
    cache.put("b", 2)
    clock.now = 3.0
    assert cache.get("a", "gone") == "gone"
    assert cache.get("b", "gone") == 2


def test_least_recently_used_is_evicted(cache):
    cache.put("a", 1)
    cache.put("b", 2)
    cache.get("a")
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (1, None, 3)


def test_putting_again_refreshes_order(cache):
    cache.put("a", 1)
    cache.put("b", 2)
    cache.put("a", 5)
    cache.put("c", 3)
    assert (cache.get("a"), cache.get("b")) == (5, None)


def test_expired_entries_leave_before_live_ones(cache, clock):
    cache.put("old", 1)
    cache.put("short", 2, ttl=1)
    clock.now = 1.0
    cache.put("new", 3)
    assert (cache.get("old"), cache.get("short"), cache.get("new")) == (1, None, 3)


def test_purge_counts_expired(cache, clock):
    cache.put("a", 1, ttl=2)
    cache.put("b", 2, ttl=5)
    clock.now = 2.0
    assert cache.purge() == 1
    assert len(cache) == 1


def test_hit_ratio(cache):
    assert cache.hit_ratio() == 0.0
    cache.put("a", 1)
    cache.get("a")
    cache.get("b")
    cache.get("c")
    cache.get("a")
    assert (cache.hits, cache.misses) == (2, 2)
    assert cache.hit_ratio() == 0.5


@pytest.mark.parametrize("options", [{"capacity": 0}, {"ttl": 0}, {"ttl": -1}])
def test_bad_options_are_refused(options):
    with pytest.raises(ValueError):
        ExpiringCache(**options)


def test_capacity_of_one_is_allowed():
    cache = ExpiringCache(capacity=1)
    cache.put("a", 1)
    cache.put("b", 2)
    assert (len(cache), cache.get("b")) == (1, 2)
    assert cache.hit_ratio() == 1.0


def test_defaults():
    cache = ExpiringCache()
    assert (cache.capacity, cache.ttl) == (128, 60.0)


def test_full_cache_keeps_expired_entries_until_room_is_needed(cache, clock):
    cache.put("a", 1, ttl=1)
    clock.now = 5.0
    cache.put("b", 2)
    assert len(cache) == 2
