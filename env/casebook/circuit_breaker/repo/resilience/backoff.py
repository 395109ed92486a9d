"""How long to wait between attempts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Waits that grow by `factor`, from `first` up to `longest` seconds, before each of `retries` retries."""

    first: float = 0.5
    factor: float = 2.0
    longest: float = 10.0
    retries: int = 3

    def waits(self):
        """Yield the seconds to wait before each retry."""
        wait = self.first
        for _ in range(self.retries):
            yield min(wait, self.longest)
            wait *= self.factor

    def total(self):
        """Return the seconds spent waiting when every attempt fails."""
        return sum(self.waits())
