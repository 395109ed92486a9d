"""Breakpoints, and quick answers to whether a line has one. Standard library only, Python 3.6 to 3.14."""

from gumshoe_files import code_lines, stop_line
from gumshoe_values import CommandError, describe_exception


class Breakpoint:
    """One breakpoint; `problem` says why it cannot be hit."""

    def __init__(
        self, number, path, line, condition=None, temporary=False, ignore=0, enabled=True, function=None, problem=None
    ):
        self.number = number
        self.path = path
        self.line = line
        self.condition = condition or None
        self.temporary = bool(temporary)
        self.ignore = int(ignore or 0)
        self.enabled = bool(enabled)
        self.function = function
        self.hits = 0
        self.problem = problem

    @property
    def place(self):
        """What makes two breakpoints the same."""
        return self.path, self.line, self.condition, self.temporary

    def as_data(self):
        """The breakpoint as the host keeps it."""
        return dict(vars(self))

    def __str__(self):
        notes = ["if " + self.condition] if self.condition else []
        notes += ["temporary"] if self.temporary else []
        notes += ["ignoring next {}".format(self.ignore)] if self.ignore else []
        notes += [] if self.enabled else ["disabled"]
        notes += [self.problem] if self.problem else []
        where = "{}:{}".format(self.path, self.line)
        return "breakpoint {} at {}{}".format(self.number, where, " (" + ", ".join(notes) + ")" if notes else "")


class Breakpoints:
    """All breakpoints, and quick answers to whether a code object or a line has one."""

    def __init__(self, files):
        self.files = files
        self.by_number = {}
        self.unreported = False
        self.span = 0
        self._by_path = {}
        self._wanted = {}
        self._since = {}

    def __bool__(self):
        return bool(self._by_path)

    def changed(self):
        """Is to be called after every change."""
        self.unreported = True
        self._wanted = {}
        self._by_path = {}
        for each in self.by_number.values():
            if each.enabled and each.problem is None:
                self._by_path.setdefault(each.path, {}).setdefault(each.line, []).append(each)
        places = [(path, line) for path, lines in self._by_path.items() for line in lines]
        self._since = {place: self._since.get(place, self.span) for place in places}

    def follows_all(self, code):
        """Whether a code object was followed from the beginning of this span: a test, or what is between two."""
        path = self.files.name(code.co_filename)
        return any(
            self._since[path, line] < self.span for line in code_lines(code).intersection(self._by_path.get(path, ()))
        )

    def add(self, path, line, **options):
        """A new breakpoint with the next number, or the existing one. Raises CommandError."""
        number = max(self.by_number, default=0) + 1
        made = Breakpoint(number, path, stop_line(self.files, path, line), **options)
        for known in self.by_number.values():
            if known.place == made.place:
                return known
        self.by_number[number] = made
        self.changed()
        return made

    def replace_all(self, items):
        """Takes over the host's table. One that cannot be placed is kept with its problem."""
        self.by_number = {}
        for item in items:
            known = {key: value for key, value in item.items() if key not in ("hits", "problem")}
            made = Breakpoint(**known)
            made.hits = item.get("hits", 0)
            try:
                made.path = self.files.resolve(made.path)
                made.line = stop_line(self.files, made.path, made.line)
            except CommandError as error:
                made.problem = str(error)
            self.by_number[made.number] = made
        self.changed()

    def as_data(self):
        """All breakpoints as the host keeps them, by number."""
        return [each.as_data() for _, each in sorted(self.by_number.items())]

    def wants(self, code):
        """Whether a code object has a line with a breakpoint."""
        key = id(code)
        known = self._wanted.get(key)
        if known is None:
            lines = self._by_path.get(self.files.name(code.co_filename))
            wanted = bool(lines) and not code_lines(code).isdisjoint(lines)
            # The code object is kept with its id, so that no other can get the same one.
            known = self._wanted[key] = (wanted, code)
        return known[0]

    def hit(self, frame):
        """The breakpoint to stop at in this line, and why its condition failed if it did; else (None, None)."""
        lines = self._by_path.get(self.files.name(frame.f_code.co_filename))
        for each in (lines or {}).get(frame.f_lineno, ()):
            met, error = _condition_met(each, frame)
            if not met:
                continue
            each.hits += 1
            if each.ignore > 0 and error is None:
                each.ignore -= 1
                continue
            if each.temporary and error is None:
                del self.by_number[each.number]
                self.changed()
            return each, error
        return None, None


def _condition_met(breakpoint_, frame):
    if breakpoint_.condition is None:
        return True, None
    try:
        return bool(eval(breakpoint_.condition, frame.f_globals, frame.f_locals)), None
    except Exception as error:  # the agent's expression may raise anything
        return True, "condition failed: " + describe_exception(type(error), error)
