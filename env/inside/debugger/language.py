"""The language of the debugger: commands as they are typed, values as they are shown."""

import contextlib
import re
import reprlib
import traceback
import types

OUTPUT_LIMIT = 6000
VALUE_LIMIT = 200
EXCEPTION_LIMIT = 600


class CommandError(Exception):
    """A command that could not be carried out; its text is the answer."""


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
"""Empty lines, and what pytest says about its own options."""


def describe_exception(kind, value):
    """`KeyError: 'x'`, without empty lines, even if the exception cannot be printed."""
    try:
        text = "".join(traceback.format_exception_only(kind, value))
    except Exception:  # the exception's own code may raise anything
        text = kind.__name__
    lines = [line.rstrip() for line in _ADDRESS.sub(">", text).splitlines() if not _NOISE.match(line)]
    return shorten("\n".join(lines), EXCEPTION_LIMIT)


HELP = (
    "commands: b FILE:LINE[, CONDITION], tbreak, log FILE:LINE, EXPRESSION, catch TYPE, watch EXPRESSION, unwatch, "
    "cl, enable, disable, condition, ignore, c, n, s, r, until, jump, "
    "w, u, d, locals, a, l, ll, p, pp, whatis, source, retval, exception, checkpoint, restore, restart, q"
)
_METHODS = {
    "args": "a args", "break": "b break", "catch": "catch", "checkpoint": "checkpoint", "clear": "cl clear",
    "condition": "condition", "continue": "c cont continue", "disable": "disable", "down": "d down",
    "enable": "enable", "exception": "exception", "help": "h help ?", "hold": "__hold__",
    "ignore": "ignore", "jump": "j jump", "list": "l list", "locals": "locals", "log": "log", "longlist": "ll longlist",
    "next": "n next", "p": "p", "pp": "pp", "quit": "q quit exit", "restart": "run restart", "restore": "restore",
    "return": "r return", "retval": "rv retval", "source": "source", "step": "s step", "tbreak": "tbreak",
    "until": "unt until", "unwatch": "unwatch", "up": "u up", "watch": "watch", "whatis": "whatis",
    "where": "w where bt",
}  # fmt: skip
_NAMES = {alias: method for method, aliases in _METHODS.items() for alias in aliases.split()}
_EXPRESSIONS = ("p", "pp", "whatis", "source", "watch")
_ABSENT = ("commands", "alias", "unalias", "interact", "debug", "display", "undisplay", "exceptions")
_PYTHON_FOLLOWS = re.compile(r"[=(\[]|\.\w|[-+*/]=")


def split_command(line):
    """The method and the argument of a command line; an empty method for a Python statement."""
    text = line.strip()
    if text.startswith("!"):
        return "", text[1:].strip()
    match = re.match(r"(\?|\w+)\s*", text)
    if not match:
        return "", text
    word, rest = match.group(1), text[match.end() :].strip()
    if word in _ABSENT and not _PYTHON_FOLLOWS.match(rest):
        return "unknown", word
    # `p (x)` prints; `c = 3`, `args[0]` and `list(x)` are Python.
    is_python = rest.startswith("=") if word in _EXPRESSIONS else _PYTHON_FOLLOWS.match(rest)
    return ("", text) if word not in _NAMES or is_python else (_NAMES[word], rest)


def split_lines(text):
    """The single commands of a text: its lines, and the parts between `;;` outside quotes.

    Indented lines stay with the one before, so that a block can be given.
    """
    commands = []
    for line in text.split("\n"):
        if not line.strip():
            continue
        if line[:1] in " \t" and commands:
            commands[-1] += "\n" + line
        else:
            commands += [part for part in (part.strip() for part in _split_semicolons(line)) if part]
    return commands


def _split_semicolons(line):
    parts, start, quote, index = [], 0, "", 0
    while index < len(line):
        character = line[index]
        if character == "\\" and quote:
            index += 1
        elif character in "'\"" and quote in ("", character):
            quote = "" if quote else character
        elif not quote and line.startswith(";;", index):
            parts.append(line[start:index])
            index += 1
            start = index + 1
        index += 1
    return [*parts, line[start:]]


def number(text, usage):
    """A whole number. Raises CommandError."""
    try:
        return int(text)
    except ValueError:
        raise CommandError("{!r} is no number. Usage: {}".format(text, usage)) from None


def check_expression(text, what="condition"):
    """Raises CommandError for anything that is not an expression."""
    try:
        compile(text.strip(), "<{}>".format(what), "eval")
    except (SyntaxError, ValueError) as error:
        raise CommandError("{} {!r}: {}".format(what, text.strip(), error)) from None
