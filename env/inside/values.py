"""How values and exceptions are shown: shortly, without memory addresses, and whatever their own code does.

Their own code, such as a `__repr__`, has REPR_S seconds in the main thread. What takes longer is shown as
`<TYPE, not shown: too slow>`, and so are other objects of its type from then on.
"""

import contextlib
import re
import reprlib
import signal
import threading
import traceback
import types

OUTPUT_LIMIT = 6000
"""Characters of what one command of the debugger prints."""
VALUE_LIMIT = 200
"""Characters of one value."""
EXCEPTION_LIMIT = 600
"""Characters of an exception's text."""
REPR_S = 1.0
"""Seconds that the repr of one value may take."""
AGAIN_S = 0.05
"""How soon an object is interrupted again if its own code has caught the interruption."""
_get_ident, _set_handler, _set_timer = threading.get_ident, signal.signal, signal.setitimer


def shorten(text, limit=OUTPUT_LIMIT):
    """`text` with its middle cut out when it is longer than `limit`."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return "{}[... {} characters cut ...]{}".format(text[:half], len(text) - 2 * half, text[-half:])


class _TooLong(BaseException):
    """Interrupts an object's own code."""


class _Limit:
    """Interrupts the program's code after REPR_S, in the main thread; other threads cannot be interrupted."""

    def __init__(self):
        self._main = threading.main_thread().ident
        # Whether the work is running. The timer goes on until it is set back, and an alarm at any other time must not
        # raise: it would get into our own code, or into the program.
        self._is_on = False
        # Whether the work was interrupted. It may have caught that and returned something all the same, which then does
        # not count: the objects of that type are too slow.
        self._is_over = False

    def within(self, work):
        """What `work()` returns; None if it was interrupted. The program's own timer and handler are restored."""
        if _get_ident() != self._main:
            return work()
        handler = _set_handler(signal.SIGALRM, self._interrupt)
        timer = _set_timer(signal.ITIMER_REAL, REPR_S, AGAIN_S)
        text = None
        self._is_over = False
        try:
            try:
                self._is_on = True
                text = work()
            finally:
                self._is_on = False
        except _TooLong:
            pass
        finally:
            _set_timer(signal.ITIMER_REAL, *timer)
            _set_handler(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        return None if self._is_over else text

    def _interrupt(self, *_):
        if self._is_on:
            self._is_over = True
            raise _TooLong


_limit = _Limit()
_slow = set()
"""Types of objects that took too long."""


def slow_types():
    """How many types are known whose objects take too long."""
    return len(_slow)


def not_shown(value):
    """What stands for an object that takes too long."""
    return "<{}, not shown: too slow>".format(type(value).__name__)


class _ShortRepr(reprlib.Repr):
    """Reprs that stay short without walking through all of a big container."""

    def __init__(self):
        super().__init__()
        self.maxlevel = 4
        self.maxtuple = self.maxlist = self.maxarray = self.maxset = self.maxfrozenset = self.maxdeque = 12
        self.maxdict = 12
        self.maxstring = self.maxlong = self.maxother = VALUE_LIMIT

    def repr_instance(self, x, level):
        """The repr of an object of any type but Python's own containers, strings and integers."""
        text = None if type(x) in _slow else _limit.within(lambda: reprlib.Repr.repr_instance(self, x, level))
        if text is None:
            _slow.add(type(x))
            return not_shown(x)
        return text


_short = _ShortRepr()


def short_repr(value):
    """A repr of at most about VALUE_LIMIT characters, even for values whose own repr fails or takes too long."""
    try:
        if _has_plain_repr(value):
            return shorten(_attributes(value, _short.repr), VALUE_LIMIT)
        return shorten(without_addresses(value, _short.repr(value)), VALUE_LIMIT)
    except Exception as error:  # the value's own code may raise anything
        return "<unprintable {}: {}>".format(type(value).__name__, type(error).__name__)


def full_repr(value):
    """The repr of a value; an object without its own repr is shown by its attributes."""
    return _attributes(value, short_repr) if _has_plain_repr(value) else text_of(value, repr)


def text_of(value, show):
    """What `show` makes of a value, without addresses; a short repr if that takes too long."""
    text = None if type(value) in _slow else _limit.within(lambda: show(value))
    return short_repr(value) if text is None else without_addresses(value, text)


def _has_plain_repr(value):
    return type(value).__repr__ is object.__repr__ and (hasattr(value, "__dict__") or hasattr(value, "__slots__"))


def _attributes(value, show):
    items = list(attributes_of(value).items())[:12]
    shown = ["{}={}".format(name, without_addresses(each, show(each))) for name, each in items]
    return "<" + " ".join([type(value).__name__, *shown]) + ">"


def attributes_of(value):
    """An object's own attributes, including those in slots, as far as they are set; none of its code runs."""
    found = {}
    for kind in type(value).__mro__[::-1]:
        if "__slots__" in vars(kind):
            for name, member in vars(kind).items():
                if isinstance(member, types.MemberDescriptorType):
                    with contextlib.suppress(AttributeError):
                        found[name] = member.__get__(value)
    with contextlib.suppress(AttributeError):
        found.update(object.__getattribute__(value, "__dict__"))
    return found


def without_addresses(value, text):
    """The text of a repr without memory addresses, which differ from run to run; strings are left as they are."""
    return text if isinstance(value, (str, bytes, bytearray)) else _ADDRESS_IN_REPR.sub("", text)


_ADDRESS = re.compile(r"(?<=[\w>)]) at 0x[0-9a-fA-F]+>")
_ADDRESS_IN_REPR = re.compile(r"(?<=[\w>)]) at 0x[0-9a-fA-F]+(?=[>:])")
_NOISE = re.compile(r"\s*(Use -v+ to get|Omitting \d+ identical items|$)")


def describe_exception(kind, value):
    """`KeyError: 'x'`, without empty lines, even if the exception cannot be printed."""
    return shorten("\n".join(plain_lines(exception_text(kind, value))), EXCEPTION_LIMIT)


def exception_text(kind, value):
    """What Python prints last about an exception, without addresses; its type where it cannot be printed."""
    try:
        text = _limit.within(lambda: "".join(traceback.format_exception_only(kind, value)))
    except Exception:  # the exception's own code may raise anything
        text = None
    return _ADDRESS.sub(">", text or kind.__name__)


def plain_lines(text):
    """The lines of a message, without empty ones and what pytest says about its own options."""
    return [line.rstrip() for line in text.splitlines() if not _NOISE.match(line)]
