"""Memoize functions in an ExpiringCache."""

import functools

from .cache import MISSING, ExpiringCache


def call_key(function, args, kwargs):
    """Return a hashable key that identifies one call of `function`."""
    named = tuple(sorted(kwargs))
    return (function.__qualname__, args, named)


def memoize(cache=None, ttl=None):
    """Return a decorator that keeps results in `cache` for `ttl` seconds.

    The decorated function has the attributes `cache` and `uncached`.
    """
    store = ExpiringCache() if cache is None else cache

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            key = call_key(function, args, kwargs)
            value = store.get(key, MISSING)
            if value is MISSING:
                value = function(*args, **kwargs)
                store.put(key, value, ttl=ttl)
            return value

        wrapper.cache = store
        wrapper.uncached = function
        return wrapper

    return decorate
