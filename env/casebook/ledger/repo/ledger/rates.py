"""Exchange rates, each stated as units of a currency for one unit of the base currency."""

from decimal import Decimal

from .money import Money, exponent


class RateTable:
    """Convert between any two currencies through `base`."""

    def __init__(self, base, rates):
        self.base = base
        self._rates = {code: Decimal(rate) for code, rate in rates.items()}
        self._rates[base] = Decimal(1)

    def rate(self, source, target):
        """Return how many units of `target` one unit of `source` buys."""
        missing = [code for code in (source, target) if code not in self._rates]
        if missing:
            raise ValueError("no rate for " + missing[0])
        return self._rates[target] / self._rates[source]

    def convert(self, money, target):
        """Return `money` expressed in `target`; the same currency is left as it is."""
        if money.currency == target:
            return money
        minor = money.minor * self.rate(money.currency, target)
        return Money.from_decimal(minor.scaleb(-exponent(money.currency)), target)
