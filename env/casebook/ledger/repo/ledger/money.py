"""Amounts of money as whole minor units (cents, pence, yen)."""

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

EXPONENTS = {"EUR": 2, "USD": 2, "GBP": 2, "JPY": 0, "KWD": 3}


def exponent(currency):
    """Return the number of decimals of `currency`.

    Raises:
        ValueError: the currency is not known.
    """
    if currency not in EXPONENTS:
        raise ValueError("unknown currency: " + currency)
    return EXPONENTS[currency]


@dataclass(frozen=True)
class Money:
    """`minor` is the amount in the smallest unit of `currency`."""

    minor: int
    currency: str

    @classmethod
    def parse(cls, text, currency):
        """Read a decimal number such as "12.50"."""
        return cls.from_decimal(Decimal(text), currency)

    @classmethod
    def from_decimal(cls, value, currency):
        """Round `value` (major units) half to even to what the currency can express."""
        scaled = value.scaleb(exponent(currency))
        return cls(int(scaled.quantize(Decimal(1), rounding=ROUND_HALF_EVEN)), currency)

    def to_decimal(self):
        """Return the amount in major units."""
        return Decimal(self.minor).scaleb(-exponent(self.currency))

    def plus(self, other):
        """Add two amounts of the same currency."""
        if other.currency != self.currency:
            raise ValueError("cannot add {} to {}".format(other.currency, self.currency))
        return Money(self.minor + other.minor, self.currency)

    def negated(self):
        """Return the opposite amount."""
        return Money(-self.minor, self.currency)

    def __str__(self):
        return "{} {}".format(self.to_decimal(), self.currency)
