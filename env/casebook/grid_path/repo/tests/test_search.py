import pytest

from gridpath.grid import Grid
from gridpath.search import NoPath, distance, find_path, reachable, trace


def test_straight_line():
    assert find_path(Grid(["...."] * 4), (0, 0), (0, 3)) == ([(0, 0), (0, 1), (0, 2), (0, 3)], 3)


def test_start_is_target():
    assert find_path(Grid(["^"]), (0, 0), (0, 0)) == ([(0, 0)], 0)


def test_way_around_a_wall():
    grid = Grid(["...", ".#.", ".#.", "##."])
    path, cost = find_path(grid, (2, 0), (2, 2))
    assert cost == 6
    assert grid.draw(path) == "ooo\no#o\no#o\n##."


def test_detour_that_is_cheaper():
    grid = Grid(["...", ".^.", ".^."])
    assert find_path(grid, (1, 0), (1, 2)) == ([(1, 0), (0, 0), (0, 1), (0, 2), (1, 2)], 4)
    assert find_path(Grid([".~.", ".^."]), (0, 0), (0, 2))[1] == 4


def test_map_that_is_wider_than_high():
    grid = Grid(["....#.", ".##...", "......"])
    path, cost = find_path(grid, (0, 0), (0, 5))
    assert cost == 7
    assert grid.draw(path) == "oooo#o\n.##ooo\n......"


def test_climbing_costs_more_than_descending():
    grid = Grid(["..~^"])
    assert find_path(grid, (0, 0), (0, 3))[1] == 9
    assert find_path(grid, (0, 3), (0, 0))[1] == 5


def test_unreachable_target():
    grid = Grid([".#.", ".#.", ".#."])
    with pytest.raises(NoPath, match="cannot be reached"):
        find_path(grid, (0, 0), (0, 2))
    with pytest.raises(NoPath, match=r"\(0, 1\) cannot be entered"):
        find_path(grid, (0, 0), (0, 1))


def test_distance_and_trace():
    assert distance((1, 5), (4, 1)) == 7
    assert trace({(0, 1): (0, 0), (1, 1): (0, 1)}, (1, 1)) == [(0, 0), (0, 1), (1, 1)]


def test_reachable():
    grid = Grid(["..#", "~..", "..."])
    assert reachable(grid, (0, 0), 0) == [(0, 0)]
    assert reachable(grid, (0, 0), 1) == [(0, 0), (0, 1), (1, 0)]
    assert reachable(grid, (0, 0), 2) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
