import pytest

from gridpath.grid import Grid


@pytest.fixture
def grid():
    return Grid.parse(
        """
        .~.#
        ^#..
        """
    )


def test_size_and_costs(grid):
    assert (grid.height, grid.width) == (2, 4)
    assert [grid.cost((0, 0)), grid.cost((0, 1)), grid.cost((1, 0))] == [1, 3, 5]


def test_inside(grid):
    assert grid.inside((0, 0))
    assert grid.inside((1, 1))
    assert [grid.inside(place) for place in [(-1, 0), (0, -1), (2, 0), (0, 4)]] == [False] * 4


def test_walls_are_not_passable(grid):
    assert grid.passable((0, 1))
    assert not grid.passable((1, 1))
    assert not grid.passable((0, 5))


def test_neighbours_in_the_order_up_right_down_left():
    grid = Grid(["...", "...", "..."])
    assert list(grid.neighbours((1, 1))) == [(0, 1), (1, 2), (2, 1), (1, 0)]
    assert list(grid.neighbours((0, 0))) == [(0, 1), (1, 0)]


def test_draw(grid):
    assert grid.draw([(0, 0), (0, 1), (0, 2), (1, 2)]) == "ooo#\n^#o."


def test_bad_maps():
    for rows, message in [([" "], "empty"), (["..", "."], "differ in length"), (["x."], "unknown field: x")]:
        with pytest.raises(ValueError, match=message):
            Grid(rows)
