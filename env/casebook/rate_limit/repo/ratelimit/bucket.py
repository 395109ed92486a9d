"""A token bucket."""


class TokenBucket:
    """Holds up to `capacity` tokens and gains `rate` tokens a second.

    Args:
        capacity: tokens in a full bucket; it starts full.
        rate: tokens gained per second.
        now: the time of creation, in seconds.
    """

    def __init__(self, capacity, rate, now=0.0):
        if capacity <= 0 or rate <= 0:
            raise ValueError("capacity and rate must be positive")
        self.capacity = capacity
        self.rate = rate
        self._tokens = capacity
        self._updated = now

    def available(self, now):
        """Return how many whole tokens can be taken at `now`."""
        self._refill(now)
        return int(self._tokens)

    def take(self, now, count=1):
        """Take `count` tokens if they are there, and tell whether they were."""
        self._refill(now)
        if self._tokens < count:
            return False
        self._tokens -= count
        return True

    def wait_time(self, now, count=1):
        """Return the seconds until `count` tokens are there, None if they never can be."""
        if count > self.capacity:
            return None
        self._refill(now)
        lacking = count - self._tokens
        return max(0.0, lacking / self.rate)

    def _refill(self, now):
        elapsed = now - self._updated
        if elapsed <= 0:
            return
        gained = elapsed * self.rate
        self._tokens = min(self.capacity, self._tokens + gained)
        self._updated = now
