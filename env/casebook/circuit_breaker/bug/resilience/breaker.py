"""A circuit breaker.

closed: calls go through; `limit` failures in a row open it.
open: calls are refused for `cooldown` seconds.
half-open: one call is let through as a probe; it closes the breaker or opens it anew.
"""

CLOSED = "closed"
OPEN = "open"
HALF_OPEN = "half-open"


class Breaker:
    """State of one service.

    Args:
        clock: function that returns the time in seconds.
        limit: failures in a row that open the breaker.
        cooldown: seconds it stays open.
    """

    def __init__(self, clock, limit=3, cooldown=30.0):
        self._clock = clock
        self._limit = limit
        self._cooldown = cooldown
        self._failures = 0
        self._opened_at = None
        self._probing = False
        self.trips = 0

    @property
    def state(self):
        """The state at this moment."""
        if self._opened_at is None:
            return CLOSED
        if self._clock() - self._opened_at < self._cooldown:
            return OPEN
        return HALF_OPEN

    def allows(self):
        """Tell whether a call may be made now; in half-open state only the first one may."""
        state = self.state
        if state == HALF_OPEN:
            if self._probing:
                return False
            self._probing = True
        return state != OPEN

    def succeeded(self):
        """A call went well."""
        self._failures = 0
        self._opened_at = None
        self._probing = False

    def failed(self):
        """A call failed."""
        self._failures += 1
        self._probing = False
        if self._failures >= self._limit:
            self._trip()

    def _trip(self):
        self.trips += 1
        if self._opened_at is None:
            self._opened_at = self._clock()
