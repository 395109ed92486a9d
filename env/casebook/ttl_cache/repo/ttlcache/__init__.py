"""A bounded cache with expiry, and a decorator built on it."""

from .cache import ExpiringCache
from .memo import memoize

__all__ = ["ExpiringCache", "memoize"]
