"""Mean, deviation and extremes of the last `size` values, each in constant time."""

from collections import deque
from math import sqrt


class RollingWindow:
    """The last `size` values that were added."""

    def __init__(self, size):
        if size < 2:
            raise ValueError("size must be at least 2")
        self.size = size
        self._values = deque()
        self._sum = 0.0
        self._squares = 0.0

    def __len__(self):
        return len(self._values)

    @property
    def full(self):
        """Whether `size` values are there."""
        return len(self._values) == self.size

    def add(self, value):
        """Add a value; the oldest one leaves when the window is full."""
        if self.full:
            oldest = self._values.popleft()
            self._sum -= oldest
            self._squares -= oldest * value
        self._values.append(value)
        self._sum += value
        self._squares += value * value

    def mean(self):
        """Return the arithmetic mean, 0.0 when empty."""
        return self._sum / len(self._values) if self._values else 0.0

    def deviation(self):
        """Return the sample standard deviation, 0.0 for fewer than two values."""
        count = len(self._values)
        if count < 2:
            return 0.0
        spread = self._squares - self._sum * self._sum / count
        return sqrt(max(0.0, spread) / (count - 1))

    def extremes(self):
        """Return the smallest and the largest value.

        Raises:
            ValueError: the window is empty.
        """
        return min(self._values), max(self._values)
