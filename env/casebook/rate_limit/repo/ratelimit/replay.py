"""Run a limiter over a log of past calls, to try out settings."""

from collections import Counter

from .limiter import Limiter


def replay(log, capacity, rate, costs=None):
    """Return how many calls of each client a limiter would have allowed.

    Args:
        log: (seconds, client, kind) of each call, in any order.
        capacity: see `Limiter`.
        rate: see `Limiter`.
        costs: see `Limiter`.
    """
    moment = [0.0]
    limiter = Limiter(capacity, rate, lambda: moment[0], costs)
    allowed = Counter()
    for seconds, client, kind in sorted(log):
        moment[0] = seconds
        if limiter.allow(client, kind):
            allowed[client] += 1
    return dict(allowed), limiter.denied
