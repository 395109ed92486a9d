"""How values and exceptions are shown: shortly, without memory addresses, and whatever their own code does."""

import contextlib
import re
import reprlib
import traceback
import types

OUTPUT_LIMIT = 6000
VALUE_LIMIT = 200
EXCEPTION_LIMIT = 600


def shorten(text, limit=OUTPUT_LIMIT):
    """`text` with its middle cut out when it is longer than `limit`."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return "{}[... {} characters cut ...]{}".format(text[:half], len(text) - 2 * half, text[-half:])


class _ShortRepr(reprlib.Repr):
    """Reprs that stay short without walking through all of a big container."""

    def __init__(self):
        super().__init__()
        self.maxlevel = 4
        self.maxtuple = self.maxlist = self.maxarray = self.maxset = self.maxfrozenset = self.maxdeque = 12
        self.maxdict = 12
        self.maxstring = self.maxlong = self.maxother = VALUE_LIMIT


_short = _ShortRepr()


def short_repr(value):
    """A repr of at most about VALUE_LIMIT characters, even for values whose own repr fails."""
    try:
        if _has_plain_repr(value):
            return shorten(_attributes(value, _short.repr), VALUE_LIMIT)
        return shorten(without_addresses(value, _short.repr(value)), VALUE_LIMIT)
    except Exception as error:  # the value's own code may raise anything
        return "<unprintable {}: {}>".format(type(value).__name__, type(error).__name__)


def full_repr(value):
    """The repr of a value; an object without its own repr is shown by its attributes."""
    return _attributes(value, short_repr) if _has_plain_repr(value) else without_addresses(value, repr(value))


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
        text = "".join(traceback.format_exception_only(kind, value))
    except Exception:  # the exception's own code may raise anything
        text = kind.__name__
    return _ADDRESS.sub(">", text)


def plain_lines(text):
    """The lines of a message, without empty ones and what pytest says about its own options."""
    return [line.rstrip() for line in text.splitlines() if not _NOISE.match(line)]
