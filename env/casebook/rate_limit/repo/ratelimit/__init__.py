"""Limit how often clients may call, with one token bucket for each."""

from .bucket import TokenBucket
from .limiter import Limiter

__all__ = ["Limiter", "TokenBucket"]
