from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.charts import categories, draw, histogram, nice_ticks

SVG = "{http://www.w3.org/2000/svg}"


def bars(text: str) -> list[tuple[str, float, float]]:
    """What each bar tells, its width and its height."""
    found = ElementTree.fromstring(text).iter(f"{SVG}rect")
    return [
        (rect[0].text or "", float(rect.get("width", 0)), float(rect.get("height", 0)))
        for rect in found
        if rect.get("class") == "bar"
    ]


@given(st.dictionaries(st.integers(0, 5000), st.integers(1, 1000), min_size=1, max_size=200))
def test_a_histogram_shows_every_count_once(counts: dict[int, int]) -> None:
    found = bars(draw([histogram("n", counts)], "n"))
    assert len(found) <= 24
    assert sum(int(told.rpartition(" ")[2]) for told, _, _ in found) == sum(counts.values())
    assert all(0 <= height <= 151 for _, _, height in found)


def test_bars_are_as_long_as_their_counts() -> None:
    found = bars(draw([categories("kinds", {"seek": 10, "edit": 5})], "kinds"))
    assert [told for told, _, _ in found] == ["seek: 10", "edit: 5"]
    assert found[0][1] == 2 * found[1][1]
    assert bars(draw([histogram("lengths", {3: 2}, unit=50)], "x"))[0][0] == "150 to 199: 2"


def test_many_kinds_are_put_together_and_none_is_said() -> None:
    many = Counter({f"kind {number}": 20 - number for number in range(12)})
    found = bars(draw([categories("kinds", many)], "kinds"))
    assert len(found) == 8
    assert found[-1][0] == f"others: {sum(20 - number for number in range(7, 12))}"
    for empty in (categories("kinds", {}), histogram("turns", {})):
        assert ">none<" in draw([empty], "nothing")


def test_names_are_escaped_and_bytes_the_same_each_time() -> None:
    made = [draw([categories("<a & b>", {'"x" <y>': 1})], "a < b & 'c'") for _ in range(2)]
    assert made[0] == made[1]
    ElementTree.fromstring(made[0])


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 9))
def test_ticks_hold_both_ends(low: float, span: float, count: int) -> None:
    ticks = nice_ticks(low, low + span, count)
    slack = (ticks[1] - ticks[0]) * 1e-6 + 1e-9
    assert ticks[0] <= low + slack
    assert ticks[-1] >= low + span - slack
    assert ticks == sorted(set(ticks))
