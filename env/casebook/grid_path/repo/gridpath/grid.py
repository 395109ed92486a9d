"""The map. Positions are (row, column), counted from the upper left corner."""

COSTS = {".": 1, "~": 3, "^": 5}
WALL = "#"
STEPS = ((-1, 0), (0, 1), (1, 0), (0, -1))


class Grid:
    """A rectangle of fields: "." costs 1 to enter, "~" 3, "^" 5, "#" cannot be entered."""

    def __init__(self, rows):
        rows = [row.strip() for row in rows if row.strip()]
        if not rows:
            raise ValueError("the map is empty")
        if len({len(row) for row in rows}) > 1:
            raise ValueError("rows differ in length")
        unknown = sorted(set("".join(rows)) - set(COSTS) - {WALL})
        if unknown:
            raise ValueError("unknown field: " + unknown[0])
        self._rows = rows
        self.height = len(rows)
        self.width = len(rows[0])

    @classmethod
    def parse(cls, text):
        """Read a map with one row a line; blank lines are skipped."""
        return cls(text.splitlines())

    def inside(self, position):
        """Tell whether a position is on the map."""
        row, column = position
        return 0 <= row < self.height and 0 <= column < self.width

    def passable(self, position):
        """Tell whether a position is on the map and no wall."""
        return self.inside(position) and self._rows[position[0]][position[1]] != WALL

    def cost(self, position):
        """Return what it costs to enter a field."""
        return COSTS[self._rows[position[0]][position[1]]]

    def neighbours(self, position):
        """Yield the fields that can be entered from `position`."""
        for down, right in STEPS:
            following = (position[0] + down, position[1] + right)
            if self.passable(following):
                yield following

    def draw(self, path):
        """Return the map as text with the fields of `path` marked by "o"."""
        marked = set(path)
        return "\n".join(
            "".join("o" if (row, column) in marked else field for column, field in enumerate(fields))
            for row, fields in enumerate(self._rows)
        )
