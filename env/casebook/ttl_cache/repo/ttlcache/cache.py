"""The cache: at most `capacity` entries, each valid for `ttl` seconds, least recently used out first."""

import time
from collections import OrderedDict

MISSING = object()


class ExpiringCache:
    """Map keys to values that expire.

    Args:
        capacity: largest number of entries kept.
        ttl: seconds an entry stays valid; at exactly `ttl` seconds it is expired.
        clock: function that returns the time in seconds.
    """

    def __init__(self, capacity=128, ttl=60.0, clock=time.monotonic):
        if capacity < 1:
            raise ValueError("capacity must be at least 1")
        if ttl <= 0:
            raise ValueError("ttl must be positive")
        self.capacity = capacity
        self.ttl = ttl
        self.hits = 0
        self.misses = 0
        self._clock = clock
        self._entries = OrderedDict()

    def __len__(self):
        return len(self._entries)

    def get(self, key, default=None):
        """Return the value of `key`, or `default` when it is absent or expired."""
        entry = self._entries.get(key, MISSING)
        if entry is MISSING:
            self.misses += 1
            return default
        value, expires = entry
        if self._clock() >= expires:
            del self._entries[key]
            self.misses += 1
            return default
        self._entries.move_to_end(key)
        self.hits += 1
        return value

    def put(self, key, value, ttl=None):
        """Store `value`; it lives `ttl` seconds, or the cache's own `ttl`."""
        lifetime = self.ttl if ttl is None else ttl
        self._entries[key] = (value, self._clock() + lifetime)
        self._entries.move_to_end(key)
        if len(self._entries) > self.capacity:
            self._make_room()

    def purge(self):
        """Drop all expired entries and return how many there were."""
        now = self._clock()
        expired = [key for key, (_, expires) in self._entries.items() if now >= expires]
        for key in expired:
            del self._entries[key]
        return len(expired)

    def hit_ratio(self):
        """Share of lookups that were answered, 0.0 before the first."""
        total = self.hits + self.misses
        return self.hits / total if total > 0 else 0.0

    def _make_room(self):
        self.purge()
        while len(self._entries) > self.capacity:
            self._entries.popitem(last=False)
