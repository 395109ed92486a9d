"""Breakpoints and how often their lines were reached, watchpoints, and the values that logpoints have seen."""

import collections

from ..functions import code_lines
from ..values import describe_exception, full_repr, short_repr, shorten
from .requests import CommandError
from .stops import END_OF_ITERATION, line_of

_END_OF_ITERATION = tuple(kind.__name__ for kind in END_OF_ITERATION)


FACTS = ("number", "path", "line", "condition", "log", "catch", "temporary", "enabled", "ignore", "hits", "problem")
"""What the host keeps of a breakpoint."""


class Breakpoint:
    """One breakpoint; `problem` says why it cannot be hit.

    One with `log`, an expression, notes its value and does not stop. One with `catch`, the name of a type or `*`, has
    no place: it stops wherever such an exception is raised in the workspace, and its path is empty.
    """

    path, line = "", 0
    condition = log = catch = problem = None
    temporary, enabled = False, True
    ignore = hits = 0

    def __init__(self, number, **facts):
        """The facts are those of `as_data`; what is left out is as above."""
        self.number = number
        vars(self).update(facts)

    @property
    def place(self):
        """What makes two breakpoints the same."""
        return self.path, self.line, self.condition, self.temporary, self.log, self.catch

    def as_data(self):
        """The breakpoint as the host keeps it."""
        return {name: getattr(self, name) for name in FACTS}

    def __str__(self):
        notes = ["if " + self.condition] if self.condition else []
        notes += ["temporary"] if self.temporary else []
        notes += ["ignoring next {}".format(self.ignore)] if self.ignore else []
        notes += [] if self.enabled else ["disabled"]
        notes += [self.problem] if self.problem else []
        notes = " (" + ", ".join(notes) + ")" if notes else ""
        if self.catch:
            return "breakpoint {} on {}{}".format(self.number, self.catch.replace("*", "any exception"), notes)
        kind = "logpoint" if self.log else "breakpoint"
        where = "{}:{}{}".format(self.path, self.line, ", " + self.log if self.log else "")
        return "{} {} at {}{}".format(kind, self.number, where, notes)


Hit = collections.namedtuple("Hit", ("number", "problem"))
"""The number of a breakpoint to stop at, and why its condition failed, None if it did not."""


class Breakpoints:
    """All breakpoints, and quick answers to whether a code object or a line has one.

    Attributes:
        by_number: the breakpoints.
        unreported: whether the host has not been told of the latest changes.
        catches: those that stop at exceptions and are enabled.
        wanted: {id of a code object: (whether it has one, the code object)}, as far as that has been asked.
        span: counts the tests, and the times between two of them.
    """

    def __init__(self, files):
        self.files = files
        self.by_number = {}
        self.unreported = False
        self.catches = []
        self.wanted = {}
        self.span = 0
        self._by_path = {}  # {path: {line: [breakpoint]}} of those that are enabled
        self._since = {}  # {(path, line): the span in which it got a breakpoint}

    def __bool__(self):
        return bool(self._by_path or self.catches)

    def changed(self):
        """Must be called after every change."""
        self.unreported = True
        self.wanted.clear()
        self._by_path = {}
        enabled = [each for each in self.by_number.values() if each.enabled and each.problem is None]
        self.catches = [each for each in enabled if each.catch]
        for each in enabled:
            if not each.catch:
                self._by_path.setdefault(each.path, {}).setdefault(each.line, []).append(each)
        places = [(path, line) for path, lines in self._by_path.items() for line in lines]
        self._since = {place: self._since.get(place, self.span) for place in places}

    def follows_all(self, code):
        """Whether a code object was followed since the start of this span: a test, or the time between two tests."""
        path = self.files.name(code.co_filename)
        return any(
            self._since[path, line] < self.span for line in code_lines(code).intersection(self._by_path.get(path, ()))
        )

    def add(self, path="", line=0, **options):
        """A new breakpoint with the next number, or the existing one. Raises CommandError."""
        number = max(self.by_number, default=0) + 1
        new = Breakpoint(number, path=path, line=self.files.stop_line(path, line) if path else 0, **options)
        for known in self.by_number.values():
            if known.place == new.place:
                return known
        self.by_number[number] = new
        self.changed()
        return new

    def replace_all(self, items):
        """Takes over the host's table. A breakpoint that cannot be placed is kept with its problem."""
        self.by_number = {}
        for item in items:
            new = Breakpoint(**dict(item, problem=None))
            try:
                if new.catch:
                    new.path, new.line = "", 0
                    continue
                new.path = self.files.resolve(new.path)
                new.line = self.files.stop_line(new.path, new.line)
            except CommandError as error:
                new.problem = str(error)
            finally:
                self.by_number[new.number] = new
        self.changed()

    def as_data(self):
        """All breakpoints as the host keeps them, by number."""
        return [each.as_data() for _, each in sorted(self.by_number.items())]

    def lines_in(self, filename):
        """The breakpoints of a file, by line."""
        return self._by_path.get(self.files.name(filename), {})

    def wants(self, code):
        """Whether a code object has a line with a breakpoint."""
        key = id(code)
        known = self.wanted.get(key)
        if known is None:
            lines = self.lines_in(code.co_filename)
            wanted = bool(lines) and not code_lines(code).isdisjoint(lines)
            # The code object is kept with its id, so that no other can get the same one.
            known = self.wanted[key] = (wanted, code)
        return known[0]

    def hit(self, frame, code, line, log):
        """The Hit to stop for on this line, or None.

        Args:
            frame: where the line begins.
            code: its code.
            line: the line's number.
            log: called with each logpoint hit here, and the frame.
        """
        stop = None
        for each in list(self.lines_in(code.co_filename).get(line, ())):
            if each.log:
                if self._take_hit(each, frame) is not None:
                    log(each, frame)
            elif stop is None:
                stop = self._take_hit(each, frame)
        return stop

    def catching(self, frame, kind):
        """The Hit to stop for when a frame sees an exception of a type, or None."""
        names = {name for each in kind.__mro__ for name in _names_of(each)}
        for each in self.catches:
            is_end = kind.__name__ in _END_OF_ITERATION and each.catch not in _END_OF_ITERATION
            if (each.catch == "*" or each.catch in names) and not is_end:
                hit = self._take_hit(each, frame)
                if hit is not None:
                    return hit
        return None

    def _take_hit(self, point, frame):
        """The Hit of a breakpoint that the program has come to; None if it is not to stop this time."""
        problem = None
        try:
            if point.condition is not None and not eval(point.condition, frame.f_globals, frame.f_locals):
                return None
        except Exception as error:  # the agent's expression may raise anything
            problem = "condition failed: " + describe_exception(type(error), error)
        point.hits += 1
        if point.ignore > 0 and problem is None:
            point.ignore -= 1
            return None
        if point.temporary and problem is None:
            del self.by_number[point.number]
            self.changed()
        return Hit(point.number, problem)


class Counts:
    """How often each line of the running test was reached."""

    def __init__(self, breakpoints):
        self._breakpoints = breakpoints
        self._seen = {}

    def begin(self):
        """Starts over, with a test or after one."""
        self._seen = {}
        self._breakpoints.span += 1

    def add(self, code, line, event):
        """Counts an event at a line of code that is followed."""
        key = (code.co_filename, line, event)
        self._seen[key] = self._seen.get(key, 0) + 1

    def of(self, frame, event):
        """How often the test was at this line, including this time; None if it was not followed from the start."""
        if not self._breakpoints.follows_all(frame.f_code):
            return None
        return self._seen[frame.f_code.co_filename, frame.f_lineno, event]


def is_loaded(name):
    """Whether there is an exception type of that name. Modules that are not imported yet may define one."""
    found, left = set(), [BaseException]
    while left:
        kind = left.pop()
        if name in _names_of(kind):
            return True
        found.add(kind)
        left.extend(each for each in type.__subclasses__(kind) if each not in found)
    return False


def _names_of(kind):
    return kind.__name__, kind.__module__ + "." + kind.__qualname__


LONGEST = 6000
"""Characters of a watched value that are compared."""
FIRST_VALUES, LAST_VALUES = 100, 100
"""Values of logpoints that are kept until the next stop."""
SHOWN = 20
"""How many of them are shown."""


class Watch:
    """An expression in a frame, whose value is checked after each line that runs until the frame ends."""

    def __init__(self, number, expression, frame):
        self.number = number
        self.expression = expression
        self.frame = frame
        self.value, self.shown = self._read()

    def _read(self):
        """The value in full and in short; an exception's text if there is no value."""
        try:
            value = eval(self.expression, self.frame.f_globals, self.frame.f_locals)
            return shorten(full_repr(value), LONGEST), short_repr(value)
        except NameError:
            return "undefined", "undefined"
        except Exception as error:  # the agent's expression may raise anything
            text = describe_exception(type(error), error)
            return text, text

    def change(self):
        """The previous and current value in short, if it has changed since the last check; else None."""
        before, value = self.shown, self._read()
        if value[0] == self.value:
            return None
        self.value, self.shown = value
        return before, self.shown

    def __str__(self):
        return "watch {} {} in {}".format(self.number, self.expression, self.frame.f_code.co_name)


class Watches:
    """All watchpoints of a process."""

    def __init__(self, files):
        self.files = files
        self.all = []
        self._last = {}

    def __bool__(self):
        return bool(self.all)

    def add(self, expression, frame):
        """A new watchpoint."""
        number = max([each.number for each in self.all] or [0]) + 1
        self.all.append(Watch(number, expression, frame))
        return self.all[-1]

    def check(self, frame):
        """What the last line changed, in words and as data; None if nothing has changed."""
        by = self._last
        self.started(frame)
        by = by or self._last
        for each in self.all:
            change = each.change()
            if change is not None:
                note = "{}: {} -> {}, by {path}:{line}".format(each.expression, change[0], change[1], **by)
                watch = dict(by, number=each.number, expression=each.expression, before=change[0], after=change[1])
                return {"note": note, "watch": watch}
        return None

    def started(self, frame):
        """Notes which line runs next."""
        self._last = {"path": self.files.shown(frame.f_code.co_filename), "line": line_of(frame)}

    def ended(self, frame, caller):
        """Deletes the watchpoints of a frame that ends, and says so; None where it has none. Its caller goes on."""
        if caller is not None:
            self.started(caller)
        over = [each for each in self.all if each.frame is frame]
        self.all = [each for each in self.all if each.frame is not frame]
        values = ", ".join("{} is {}".format(each.expression, each.shown) for each in over)
        return "{} ends, and so does the watch: {}".format(frame.f_code.co_name, values) if over else None


class Log:
    """The values that logpoints have seen since the program went on, the first and the last ones; also other notes."""

    def __init__(self, files):
        self.files = files
        self.values = []
        self.dropped = 0
        self.notes = []

    def note(self, text):
        """Takes in what else there is to say when the program stops or ends."""
        if text not in self.notes:
            self.notes.append(text)

    def add(self, point, frame):
        """Takes in a logpoint that is hit."""
        try:
            text = short_repr(eval(point.log, frame.f_globals, frame.f_locals))
        except Exception as error:  # the agent's expression may raise anything
            text = describe_exception(type(error), error)
        if len(self.values) == FIRST_VALUES + LAST_VALUES:
            del self.values[FIRST_VALUES]
            self.dropped += 1
        names = {"path": point.path, "line": point.line, "number": point.number, "hit": point.hits}
        self.values.append(dict(names, expression=point.log, value=text))

    def take(self):
        """What a command's result shows of them: `output`, the text, and `log`; empty if there are none."""
        values, dropped, notes = self.values, self.dropped, self.notes
        self.values, self.dropped, self.notes = [], 0, []
        if not values and not notes:
            return {}
        lines = ["{path}:{line} {expression} = {value}".format(**each) for each in values]
        if len(lines) > SHOWN:
            half = SHOWN // 2
            left_out = len(lines) + dropped - SHOWN
            lines[half:-half] = ["[... {} more values ...]".format(left_out)]
        return {"output": "\n".join(lines + notes), "log": values, "log_dropped": dropped}
