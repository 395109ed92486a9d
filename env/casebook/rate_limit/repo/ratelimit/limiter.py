"""Limits for many clients."""

from .bucket import TokenBucket


class Limiter:
    """Decide whether a client may call now.

    Args:
        capacity: calls a client may make in one burst.
        rate: calls per second in the long run.
        clock: function that returns the time in seconds.
        costs: tokens that calls of a given kind cost; 1 for all others.
        idle_after: seconds without a call after which a client is forgotten.
    """

    def __init__(self, capacity, rate, clock, costs=None, idle_after=300.0):
        self.capacity = capacity
        self.rate = rate
        self.idle_after = idle_after
        self._clock = clock
        self._costs = dict(costs or {})
        self._buckets = {}
        self._seen = {}
        self.denied = 0

    def allow(self, client, kind="default"):
        """Count a call of `client` and tell whether it may go ahead."""
        now = self._clock()
        allowed = self._bucket(client, now).take(now, self._costs.get(kind, 1))
        if not allowed:
            self.denied += 1
        return allowed

    def retry_after(self, client, kind="default"):
        """Return the seconds after which a call would be allowed, None if it never will be."""
        now = self._clock()
        return self._bucket(client, now).wait_time(now, self._costs.get(kind, 1))

    def forget_idle(self):
        """Drop clients that have been idle for `idle_after` seconds and return their names, sorted."""
        now = self._clock()
        idle = sorted(name for name, seen in self._seen.items() if now - seen >= self.idle_after)
        for name in idle:
            del self._buckets[name]
            del self._seen[name]
        return idle

    def _bucket(self, client, now):
        if client not in self._buckets:
            self._buckets[client] = TokenBucket(self.capacity, self.rate, now)
        self._seen[client] = now
        return self._buckets[client]
