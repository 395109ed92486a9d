"""The language of the debugger: commands as they are typed."""

import re


class CommandError(Exception):
    """A command that could not be carried out; its text is the answer."""


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
"""Commands of pdb that are not there; without this, they would be taken for Python."""
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
