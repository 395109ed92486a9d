"""How sure the investigator says it is: its belief, corrected for what a simple model overlooks.

The belief takes what it sees for independent, and the bug for one of a few kinds. Measured against whether the first
location holds a line of the fix, it is too high in the middle. The correction is a line on the scale of log-odds (J.
Platt, 1999), fitted on the same bugs as the prior.
"""

from __future__ import annotations

import math

__all__ = ["confidence"]

OFFSET, SLOPE = -0.45, 1.2
LEAST = 1e-3
"""Nearer to 0 or 1 no belief is taken to be."""


def confidence(belief: float) -> float:
    """The probability that a location is right, of which the belief says how likely it is."""
    if belief <= 0:
        return 0.0
    sure = min(max(belief, LEAST), 1 - LEAST)
    return 1 / (1 + math.exp(-OFFSET - SLOPE * math.log(sure / (1 - sure))))
