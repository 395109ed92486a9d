import pytest

from tablefmt import records_table, render
from tablefmt.cells import cell_text, wrap
from tablefmt.records import with_total

PARTS = [
    {"part_no": "A1", "stock": 12, "price": 2.5},
    {"part_no": "B22", "stock": 7, "note": "last ones"},
]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "yes"), (False, "no"), (0, "0"), (1.005, "1.00"), (2.0, "2.00"), ("a|b", "a\\|b")],
    ids=["none", "true", "false", "zero", "rounded", "float", "pipe"],
)
def test_cell_text(value, text):
    assert cell_text(value) == text


def test_wrap_at_spaces():
    assert wrap("to be or not to be", 5) == ["to be", "or", "not", "to be"]
    assert wrap("", 5) == [""]


def test_wrap_cuts_long_words():
    assert wrap("an elephantine a", 5) == ["an", "eleph", "antin", "e a"]
    assert wrap("exact fit", 5) == ["exact", "fit"]


def test_render_rows():
    assert render(["name", "n"], [["ab", 1], ["c", 1000]]).splitlines() == [
        "| name |    n |",
        "| ---- | ---: |",
        "| ab   |    1 |",
        "| c    | 1000 |",
    ]


def test_mixed_and_empty_columns_are_aligned_left():
    assert render(["a", "b", "c"], [[1, None, None], ["x", None, 5]]).splitlines() == [
        "| a   | b   |   c |",
        "| --- | --- | --: |",
        "| 1   |     |     |",
        "| x   |     |   5 |",
    ]


def test_long_cells_continue_on_the_next_line():
    assert render(["k", "text"], [["a", "one two three"]], max_width=7).splitlines() == [
        "| k   | text    |",
        "| --- | ------- |",
        "| a   | one two |",
        "|     | three   |",
    ]


def test_a_column_is_needed():
    with pytest.raises(ValueError, match="needs a column"):
        render([], [])


def test_default_width():
    lines = render(["t"], [["x" * 31]]).splitlines()
    assert [len(line) for line in lines] == [34, 34, 34, 34]


def test_records_with_all_fields():
    assert records_table(PARTS).splitlines() == [
        "| part no | stock | price | note      |",
        "| ------- | ----: | ----: | --------- |",
        "| A1      |    12 |  2.50 |           |",
        "| B22     |     7 |       | last ones |",
    ]


def test_records_with_total():
    assert records_table(PARTS, ["part_no", "stock", "price"], total=True).splitlines()[2:] == [
        "| A1      |    12 |  2.50 |",
        "| B22     |     7 |       |",
        "| total   |    19 |  2.50 |",
    ]


def test_total_skips_columns_of_text():
    assert with_total([["a", 1, "x", None], ["b", 2, "y", None]])[-1] == ["total", 3, None, None]


def test_no_records():
    assert records_table([], ["id"], total=True) == "| id  |\n| --- |"
