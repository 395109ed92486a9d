"""Search for cheap paths."""

import heapq
from collections import deque


class NoPath(Exception):
    """The target cannot be reached."""


def distance(here, there):
    """Return the number of steps between two positions on a map without walls."""
    return abs(here[0] - there[0]) + abs(here[1] - there[1])


def find_path(grid, start, target):
    """Return the cheapest path and its cost (A*). The start costs nothing.

    Raises:
        NoPath: there is none, or an end of it lies in a wall or off the map.
    """
    for end in (start, target):
        if not grid.passable(end):
            raise NoPath("{} cannot be entered".format(end))
    best = {start: 0}
    came_from = {}
    frontier = [(distance(start, target), start)]
    closed = set()
    while frontier:
        _, here = heapq.heappop(frontier)
        if here == target:
            return trace(came_from, target), best[target]
        if here in closed:
            continue
        closed.add(here)
        for following in grid.neighbours(here):
            cost = best[here] + grid.cost(following)
            if following not in best or cost < best[following]:
                best[following] = cost
                came_from[following] = here
                estimate = cost + distance(following, target)
                heapq.heappush(frontier, (estimate, following))
    raise NoPath("{} cannot be reached from {}".format(target, start))


def trace(came_from, target):
    """Return the positions from the start to `target`."""
    path = [target]
    while path[-1] in came_from:
        path.append(came_from[path[-1]])
    return path[::-1]


def reachable(grid, start, steps):
    """Return all positions at most `steps` steps away, whatever they cost, sorted."""
    seen = {start: 0}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        if seen[here] == steps:
            continue
        for following in grid.neighbours(here):
            if following not in seen:
                seen[following] = seen[here] + 1
                queue.append(following)
    return sorted(seen)
