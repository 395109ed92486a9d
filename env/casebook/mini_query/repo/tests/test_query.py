import pytest

from miniquery import Query
from miniquery.conditions import condition, literal

ROWS = [
    {"id": 1, "city": "Kiel", "size": 40, "price": 2.5},
    {"id": 2, "city": "Bonn", "size": 25, "price": 1.0},
    {"id": 3, "city": "Kiel", "size": 15, "price": None},
    {"id": 4, "city": "Bonn", "size": 60, "price": 4.0},
    {"id": 5, "city": "Jena", "size": 25},
]


@pytest.fixture
def query():
    return Query(ROWS)


def test_literals():
    assert [literal(text) for text in ("'a b'", "null", "12", "-1.5", "''")] == ["a b", None, 12, -1.5, ""]
    for text in ("abc", "'"):
        with pytest.raises(ValueError):
            literal(text)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("size < 25", [3]),
        ("size <= 25", [2, 3, 5]),
        ("size > 40", [4]),
        ("size >= 40", [1, 4]),
        ("city = 'Kiel'", [1, 3]),
        ("city != 'Kiel'", [2, 4, 5]),
        ("price = null", [3, 5]),
        ("price < 2.0", [2]),
        ("price > null", []),
    ],
    ids=["lt", "le", "gt", "ge", "eq", "ne", "null", "lt-null", "gt-null"],
)
def test_one_condition(query, text, ids):
    assert query.where(text).select("id") == ids


def test_bad_condition():
    with pytest.raises(ValueError, match="not a condition: size"):
        condition("size")


def test_several_conditions(query):
    assert query.where("size > 20", "price <= 2.5", "city = 'Bonn'").select("id") == [2]
    assert query.where("size >= 25").where("city != 'Jena'").count() == 3


def test_queries_are_not_changed_by_their_steps(query):
    query.where("size > 20")
    assert query.count() == 5


def test_order(query):
    assert query.order_by("size").select("id") == [3, 2, 5, 1, 4]
    assert query.order_by("-price").select("id") == [4, 1, 2, 3, 5]
    assert query.order_by("city", "-size").select("id") == [4, 2, 5, 1, 3]


def test_limit(query):
    assert query.limit(2).select("id") == [1, 2]
    assert query.limit(2, offset=3).select("id") == [4, 5]


def test_select(query):
    assert query.limit(2).select("id", "city") == [(1, "Kiel"), (2, "Bonn")]
    assert query.select("price") == [2.5, 1.0, None, 4.0, None]


def test_join(query):
    lands = Query([{"city": "Kiel", "land": "SH"}, {"city": "Bonn", "land": "NW"}, {"land": "XX"}])
    joined = query.join(lands, on="city")
    assert joined.select("id", "land") == [(1, "SH"), (2, "NW"), (3, "SH"), (4, "NW")]
    assert Query([{"city": None}]).join(lands, on="city").count() == 0


def test_groups(query):
    grouped = query.group_by("city", n="count(id)", total="sum(size)", mean="avg(price)")
    assert grouped.rows() == [
        {"city": "Kiel", "n": 2, "total": 55, "mean": 2.5},
        {"city": "Bonn", "n": 2, "total": 85, "mean": 2.5},
        {"city": "Jena", "n": 1, "total": 25, "mean": None},
    ]
    assert query.group_by("city", low="min(size)", high="max(price)").select("low", "high") == [
        (15, 2.5),
        (25, 4.0),
        (25, None),
    ]


def test_groups_of_some_rows(query):
    large = query.where("size >= 25", "price != null").group_by("city", n="count(id)")
    assert large.select("city", "n") == [("Kiel", 1), ("Bonn", 2)]
