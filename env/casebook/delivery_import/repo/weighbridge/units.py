"""Units of mass."""

GRAMS = {"g": 1, "kg": 1000, "t": 1000000, "oz": 28.349523125, "lb": 453.59237}


def to_kilograms(amount, unit):
    """Return `amount` of `unit` in kilograms.

    Raises:
        ValueError: the unit is not known.
    """
    if unit not in GRAMS:
        raise ValueError("unknown unit: " + unit)
    return amount * GRAMS[unit] / 1000


def read_number(text):
    """Read a number that may have spaces or commas between thousands; parentheses make it negative."""
    text = text.strip()
    negative = text.startswith("(") and text.endswith(")")
    digits = text.strip("()").replace(",", "").replace(" ", "")
    value = float(digits)
    return -value if negative else value
