import pytest

from stockroom.orders import Desk
from stockroom.stock import OutOfStock, Stock


@pytest.fixture
def stock():
    shelves = Stock()
    shelves.put("bolt", "A1", 30)
    shelves.put("bolt", "A2", 10)
    shelves.put("nut", "B1", 8)
    return shelves


@pytest.fixture
def desk(stock):
    return Desk(stock)


def test_putting_adds_up(stock):
    stock.put("nut", "B1", 2)
    stock.put("nut", "B2", 1)
    assert stock.layout("nut") == {"B1": 10, "B2": 1}
    assert stock.count("nut") == 11
    assert stock.count("screw") == 0


def test_quantity_must_be_positive(stock):
    for quantity in (0, -1):
        with pytest.raises(ValueError, match="must be positive"):
            stock.put("nut", "B1", quantity)


def test_small_bins_are_emptied_first(stock):
    assert stock.pick("bolt", 12) == [("A2", 10), ("A1", 2)]
    assert stock.layout("bolt") == {"A1": 28}


def test_equal_bins_go_by_name(stock):
    stock.put("bolt", "A0", 10)
    assert stock.pick("bolt", 10) == [("A0", 10)]


def test_picking_too_much(stock):
    with pytest.raises(OutOfStock, match="nut short by 2") as caught:
        stock.pick("nut", 10)
    assert (caught.value.sku, caught.value.missing) == ("nut", 2)


def test_order_is_filled(desk):
    order = desk.fill([("bolt", 10), ("nut", 8), ("bolt", 1)])
    assert order.number == 1
    assert order.picks == {"bolt": [("A2", 10), ("A1", 1)], "nut": [("B1", 8)]}
    assert desk.stock.count("nut") == 0
    assert desk.fill([("bolt", 1)]).number == 2


def test_failed_order_takes_nothing(desk, stock):
    with pytest.raises(OutOfStock, match="nut short by 1"):
        desk.fill([("bolt", 15), ("nut", 9)])
    assert stock.layout("nut") == {"B1": 8}
    assert stock.layout("bolt") == {"A1": 30, "A2": 10}


def test_unknown_article_takes_nothing(desk, stock):
    with pytest.raises(OutOfStock, match="screw short by 4"):
        desk.fill([("screw", 4), ("bolt", 5)])
    assert stock.count("bolt") == 40
    assert desk.fill([("bolt", 5)]).number == 1


def test_reserved_pieces_are_not_sold(desk, stock):
    assert desk.reserve("nut", 5)
    assert desk.available("nut") == 3
    with pytest.raises(OutOfStock, match="nut short by 1"):
        desk.fill([("nut", 4)])
    assert desk.fill([("nut", 3)]).picks == {"nut": [("B1", 3)]}


def test_reserving_more_than_available(desk):
    assert desk.reserve("nut", 8)
    assert not desk.reserve("nut", 1)
    assert desk.reserve("nut", 0)


def test_release(desk):
    desk.reserve("nut", 6)
    desk.release("nut", 2)
    assert desk.available("nut") == 4
    desk.release("nut", 50)
    assert desk.available("nut") == 8
    desk.release("bolt", 3)
    assert desk.available("bolt") == 40


def test_to_reorder(desk):
    desk.reserve("nut", 3)
    assert desk.to_reorder(["bolt", "nut", "screw"]) == ["screw", "nut"]
    desk.release("nut", 1)
    assert desk.to_reorder(["bolt", "nut", "screw"]) == ["screw"]
