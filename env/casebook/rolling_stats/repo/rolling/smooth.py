"""Smoothing of streams, as generators."""

from .window import RollingWindow


def moving_average(values, size):
    """Yield the mean of the last `size` values, from the first full window on."""
    window = RollingWindow(size)
    for value in values:
        window.add(value)
        if window.full:
            yield window.mean()


def exponential(values, weight=0.5):
    """Yield the exponentially weighted mean; `weight` is the share of the newest value."""
    if not 0 < weight <= 1:
        raise ValueError("weight must be above 0 and at most 1")
    level = None
    for value in values:
        level = value if level is None else weight * value + (1 - weight) * level
        yield level


def downsample(values, step):
    """Yield the mean of each block of `step` values; the last block may be shorter."""
    block = []
    for value in values:
        block.append(value)
        if len(block) == step:
            yield sum(block) / step
            block = []
    if block:
        yield sum(block) / len(block)
