"""The recorded calls of a function in one test, and how values in them are described."""

import collections
import time

from ..debugger.stops import DULL
from ..values import attributes_of, describe_exception, not_shown, short_repr, slow_types

FIRST_STEPS, LAST_STEPS = 200, 40
"""Lines of one call that are kept, at its beginning and at its end."""
FIRST_CALLS, LAST_CALLS = 100, 20
"""Calls of one test that are kept."""
FULL_LINES, FULL_CHARACTERS = 30000, 1 << 20
"""Lines of one test, and characters of values, after which only its calls are recorded."""
VARIABLES = 30
"""Variables of a frame that are looked at; `self` is one, whatever attributes it has."""
PLAIN = (int, float, complex, bool, str, bytes, type(None))
TEST_S, ALL_S, LEAST_S = 0.5, 20.0, 0.02
"""Seconds for describing the values of one test; LEAST_S once those of all tests have taken ALL_S."""


class Call:
    """One call, while it goes on and afterwards.

    Attributes:
        number: its place among the test's calls, from 1.
        count: how many calls of the test were equal, with this one.
        caller: the nearest calling frame in the project, or None.
        arguments: {name: description} of its variables when it began.
        steps: its first lines, at most `FIRST_STEPS`, each with what it changed and the exception raised there.
        last: its last lines after those, at most `LAST_STEPS`.
        length: how many lines it ran, kept or not.
        values: {name: (the value if it is plain, else None, description)}: what its variables were when last looked
            at. Empty once the call is over.
        error_seen: the exception seen since the last line began, until that line's step has it; or None.
        outcome, value: how it ended, and what it returned or raised.
        yields, yielded: descriptions of what it yielded first, and how many values it yielded.
    """

    def __init__(self, number, caller):
        self.number = number
        self.count = 1
        self.caller = caller
        self.arguments = {}
        self.steps = []
        self.last = collections.deque(maxlen=LAST_STEPS)
        self.length = 0
        self.values = {}
        self.error_seen = None
        self.outcome = "unfinished"
        self.value = ""
        self.yields = []
        self.yielded = 0

    def add(self, line):
        """A line begins."""
        step = [line, {}, ""]
        self.length += 1
        (self.steps if len(self.steps) < FIRST_STEPS else self.last).append(step)

    def step(self):
        """The line that began last; None before the first."""
        return self.last[-1] if self.last else self.steps[-1] if self.steps else None

    def key(self):
        """What equal calls have in common."""
        lines = tuple(step[0] for step in self.steps) + tuple(step[0] for step in self.last)
        return tuple(self.arguments.items()), lines, self.length, self.outcome, self.value, tuple(self.yields)

    def as_data(self):
        """The call as it is written."""
        names = ("number", "count", "arguments", "caller", "outcome", "value", "yields", "yielded")
        steps = self.steps + list(self.last)
        return dict({name: getattr(self, name) for name in names}, steps=steps, skipped=self.length - len(steps))


class RunningTest:
    """A test with its calls of the function.

    Attributes:
        name: the test's.
        number, lines, size: how many calls, how many lines these ran, and how many characters their values have.
        active: the calls that go on, by the ids of their frames.
    """

    def __init__(self, name):
        self.name = name
        self.number = self.lines = self.size = 0
        self.active = {}
        self._first = collections.OrderedDict()  # {what equal calls have in common: call}
        self._last = collections.deque(maxlen=LAST_CALLS)

    def is_full(self):
        """Whether its values are looked at no longer."""
        return self.lines > FULL_LINES or self.size > FULL_CHARACTERS

    def keep(self, call):
        """Keeps a call that has ended, unless there is an equal one."""
        call.values = {}
        key = call.key()
        known = self._first.get(key)
        if known is not None:
            known.count += 1
        elif len(self._first) < FIRST_CALLS:
            self._first[key] = call
        else:
            self._last.append(call)

    def keep_active(self):
        """Keeps the calls that have not ended, or whose end was not seen: recursion that is too deep ends tracing."""
        for call in list(self.active.values()):
            self.keep(call)

    def kept(self):
        """The first and the last calls that were kept."""
        return list(self._first.values()) + list(self._last)


def variables_of(frame):
    """Names and values of a frame's variables; an object whose method is running is shown by its attributes."""
    values = frame.f_locals
    shown = 0
    for name in list(values):
        value = values.get(name)
        if name.startswith(("__", "@", ".")) or isinstance(value, DULL):
            continue
        if name == "self":
            attributes = _attributes(value)
            for attribute, inner in attributes:
                yield "self." + attribute, inner
            if not attributes or isinstance(value, (list, dict, set, tuple, str, int)):
                yield name, value
        else:
            yield name, value
        shown += 1
        if shown == VARIABLES:
            return


def _attributes(value):
    try:
        items = list(attributes_of(value).items())
    except BaseException:  # the program has changed how its classes are made
        return []
    return [(name, inner) for name, inner in items if isinstance(name, str) and not isinstance(inner, DULL)][:12]


def describe(value):
    """The value, shortened; with its length where that cannot be seen."""
    try:
        text = short_repr(value)
        size = len(value) if isinstance(value, (list, tuple, dict, set, frozenset, str, bytes)) else 0
    except BaseException as error:  # the value's own code may raise anything
        return "<unprintable {}: {}>".format(type(value).__name__, type(error).__name__)
    limit = 190 if isinstance(value, (str, bytes)) else 12
    return "{} (len {})".format(text, size) if size > limit else text


class Describer:
    """Describes values as long as there is time: the repr of an object may print everything that the object holds.

    When a test's time is up, anything but a plain value becomes `<TYPE, not shown NUMBER>`, and so does in any case an
    object that takes too long by itself, whose time does not count. The number is different each time, so that such a
    value equals no other.
    """

    def __init__(self):
        self._all = self._spent = 0.0
        self._hidden = 0

    @property
    def has_time(self):
        """Whether values are still described."""
        return self._left > 0

    @property
    def _left(self):
        return (TEST_S if self._all < ALL_S else LEAST_S) - self._spent

    def begin(self):
        """A test begins."""
        self._spent = 0.0

    def describe(self, value, clock=time.perf_counter):
        """The value, shortened, or a note that it is not shown."""
        if type(value) in PLAIN:
            return describe(value)
        text = None
        if self.has_time:
            began, slow = clock(), slow_types()
            text = describe(value)
            took = clock() - began if slow_types() == slow else 0.0
            self._spent += took
            self._all += took
        if text in (None, not_shown(value)):
            self._hidden += 1
            return "<{}, not shown {}>".format(type(value).__name__, self._hidden)
        return text


def describe_error(error):
    """Class and message of an exception."""
    try:
        return describe_exception(type(error), error)
    except BaseException:  # the exception's own code may raise anything
        return type(error).__name__
