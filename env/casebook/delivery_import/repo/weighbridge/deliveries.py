"""Deliveries, read and added up."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date

from .units import read_number, to_kilograms


@dataclass(frozen=True)
class Delivery:
    """What came on a day; a negative mass is a return."""

    day: date
    article: str
    kilograms: float


def read_deliveries(records, unit="kg"):
    """Return the deliveries and the problems of `records`.

    Args:
        records: dictionaries of texts with date (ISO), article, amount and unit.
        unit: the unit of records that state none.

    Returns:
        A list of deliveries and a list of (record number, message), counted from 1.
    """
    deliveries = []
    problems = []
    for number, record in enumerate(records, start=1):
        own_unit = record["unit"] or unit
        try:
            day = date(*[int(part) for part in record["date"].split("-")])
            mass = to_kilograms(read_number(record["amount"]), own_unit)
        except (TypeError, ValueError) as error:
            problems.append((number, str(error)))
            continue
        deliveries.append(Delivery(day, record["article"].lower(), mass))
    return deliveries, problems


def totals(deliveries, since=None):
    """Return {article: kilograms} of the deliveries on or after the day `since`, rounded to grams."""
    sums = defaultdict(float)
    for delivery in deliveries:
        if since is None or delivery.day >= since:
            sums[delivery.article] += delivery.kilograms
    return {article: round(sums[article], 3) for article in sorted(sums)}


def busiest_day(deliveries):
    """Return the day with the largest mass delivered, the earliest of several; None without deliveries."""
    masses = defaultdict(float)
    for delivery in deliveries:
        masses[delivery.day] += delivery.kilograms
    return min(masses, key=lambda day: (-masses[day], day)) if masses else None
