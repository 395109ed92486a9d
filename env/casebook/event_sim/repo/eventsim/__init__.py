"""Discrete event simulation: a clock that jumps from event to event."""

from .simulator import Simulator

__all__ = ["Simulator"]
