"""Watchpoints, and the values that logpoints have seen. Standard library only, Python 3.6 to 3.14."""

from .stops import line_of
from .values import describe_exception, full_repr, short_repr, shorten

LONGEST = 6000
FIRST_VALUES, LAST_VALUES = 100, 100
SHOWN = 20


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
    """The values that logpoints have seen since the program went on: the first and the last ones."""

    def __init__(self, files):
        self.files = files
        self.values = []
        self.dropped = 0

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
        values, dropped = self.values, self.dropped
        self.values, self.dropped = [], 0
        if not values:
            return {}
        lines = ["{path}:{line} {expression} = {value}".format(**each) for each in values]
        if len(lines) > SHOWN:
            half = SHOWN // 2
            left_out = len(lines) + dropped - SHOWN
            lines[half:-half] = ["[... {} more values ...]".format(left_out)]
        return {"output": "\n".join(lines), "log": values, "log_dropped": dropped}
