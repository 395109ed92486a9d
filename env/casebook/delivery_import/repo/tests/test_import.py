from datetime import date

import pytest

from weighbridge.deliveries import Delivery, busiest_day, read_deliveries, totals
from weighbridge.layout import from_csv, from_fixed_width
from weighbridge.units import read_number, to_kilograms

MIXED = """\
date,article,amount,unit
2024-03-01,Sand,2,t
2024-03-01,gravel,"1,500",
2024-03-02,SAND,100,lb
2024-03-03,gravel,(250),
""".splitlines()


def record(amount, unit="", day="2024-01-05", article="sand"):
    return {"date": day, "article": article, "amount": amount, "unit": unit}


def test_units():
    assert [to_kilograms(2, unit) for unit in ("g", "kg", "t")] == [0.002, 2.0, 2000.0]
    assert to_kilograms(1, "lb") == pytest.approx(0.45359237)
    assert to_kilograms(16, "oz") == pytest.approx(to_kilograms(1, "lb"))
    with pytest.raises(ValueError, match="unknown unit: st"):
        to_kilograms(1, "st")


def test_numbers():
    assert [read_number(text) for text in ("12", " 1,234.5 ", "1 000", "(3)", "-4")] == [12, 1234.5, 1000, -3, -4]


def test_csv_records():
    records = list(from_csv(MIXED))
    assert len(records) == 4
    assert records[1] == {"date": "2024-03-01", "article": "gravel", "amount": "1,500", "unit": ""}
    assert list(from_csv(["date,article", " 2024-01-01 ,x"]))[0]["amount"] == ""


def test_fixed_width_records():
    lines = ["2024-03-01coarse sand         12kg", "", "2024-03-02clay        1234567890lb  "]
    assert list(from_fixed_width(lines)) == [
        {"date": "2024-03-01", "article": "coarse sand", "amount": "12", "unit": "kg"},
        {"date": "2024-03-02", "article": "clay", "amount": "1234567890", "unit": "lb"},
    ]
    assert next(from_fixed_width(["abcdef"], widths=(1, 2, 1, 2))) == {
        "date": "a",
        "article": "bc",
        "amount": "d",
        "unit": "ef",
    }


def test_default_unit():
    assert read_deliveries([record("5")])[0] == [Delivery(date(2024, 1, 5), "sand", 5.0)]
    assert read_deliveries([record("5")], unit="g")[0][0].kilograms == 0.005


def test_problems_are_counted_and_skipped():
    records = [record("x"), record("1"), record("1", "st"), record("1", day="2024-13-01"), record("1", day="2024")]
    deliveries, problems = read_deliveries(records)
    assert [delivery.kilograms for delivery in deliveries] == [1.0]
    assert [number for number, _ in problems] == [1, 3, 4, 5]
    assert problems[1][1] == "unknown unit: st"


def test_totals_of_a_list_with_several_units():
    deliveries, problems = read_deliveries(from_csv(MIXED))
    assert problems == []
    assert totals(deliveries) == {"gravel": 1250.0, "sand": 2045.359}


def test_totals_since_a_day():
    deliveries, _ = read_deliveries(record(str(day), day="2024-01-0" + str(day)) for day in (1, 2, 3))
    assert totals(deliveries, since=date(2024, 1, 2)) == {"sand": 5.0}
    assert totals(deliveries, since=date(2024, 1, 4)) == {}


def test_busiest_day():
    days = [("5", "2024-01-02"), ("9", "2024-01-01"), ("4", "2024-01-02")]
    deliveries, _ = read_deliveries(record(amount, day=day) for amount, day in days)
    assert busiest_day(deliveries) == date(2024, 1, 1)
    assert busiest_day(deliveries[:1] + deliveries[2:]) == date(2024, 1, 2)
    assert busiest_day(deliveries[2:] + [Delivery(date(2024, 1, 3), "clay", 6.0)] + deliveries[2:]) == date(2024, 1, 2)
    assert busiest_day([]) is None
