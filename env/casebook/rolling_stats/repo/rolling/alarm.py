"""Find values that stand out."""

from dataclasses import dataclass

from .window import RollingWindow


@dataclass(frozen=True)
class Alarm:
    """A value that stood out; `score` is its distance from the mean in deviations."""

    index: int
    value: float
    score: float


def score(value, window):
    """Return how many deviations `value` is from the mean of `window`, 0.0 for a flat window."""
    deviation = window.deviation()
    if deviation == 0:
        return 0.0
    return (value - window.mean()) / deviation


def alarms(values, size=5, threshold=3.0):
    """Return an Alarm for each value at least `threshold` deviations from the `size` values before it.

    No alarm is raised before a whole window has been seen. A value that raised an alarm does not enter the window.
    """
    window = RollingWindow(size)
    raised = []
    for index, value in enumerate(values):
        distance = score(value, window) if window.full else 0.0
        if abs(distance) >= threshold:
            raised.append(Alarm(index, value, distance))
        else:
            window.add(value)
    return raised


def quiet_share(values, size=5, threshold=3.0):
    """Return the share of values that raise no alarm, 1.0 when there are no values."""
    values = list(values)
    if not values:
        return 1.0
    return 1 - len(alarms(values, size, threshold)) / len(values)
