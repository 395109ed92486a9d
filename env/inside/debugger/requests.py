"""What the host asks for: commands as they are typed, and the conversation in which they come.

The docstring of `main` has the protocol.
"""

import re

from ..programs.program import flush_output


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
"""By the name of a method of `Commands`, without its `do_`, the words that call it. `__hold__` is only for the host."""
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


class Requests:
    """The host's request that is being carried out.

    Attributes:
        in_hand: whether there is a request that has no answer yet.
        queue: the command lines that are still to be run.
        results: of the commands that were run; that of the running one comes last.
        is_waiting: whether the debugger waits for a request.

    Args:
        channel: leads to the host.
        note: is called with the nonce of a request once it is there, and with None once it is answered.
    """

    def __init__(self, channel, note):
        self._channel = channel
        self._note = note
        self._rest = {}
        self.in_hand = False
        self.queue = []
        self.results = []
        self.is_waiting = False

    def take(self):
        """Waits for the next request and queues its commands. Returns it."""
        self.is_waiting = True
        request = self._channel.receive()
        self._note(self._channel.nonce)
        self.is_waiting, self.in_hand = False, True
        self.results = []
        self.queue = [line for text in request.get("lines", ()) for line in split_lines(text)]
        return request

    def next_command(self):
        """Takes the next command from the queue. Returns it, and its result, which is to be filled in."""
        line = self.queue.pop(0)
        self.results.append({"command": line, "output": ""})
        return line, self.results[-1]

    def note_result(self, **facts):
        """Adds to the result of the running command."""
        self.results[-1].update(facts)

    def leave_to_host(self, state, **facts):
        """Has the host do the rest: the next answer says in which state, and the queue is dropped."""
        self._rest = dict(facts, state=state)
        self.queue = []

    def give_up_queue(self):
        """The program has ended: what is still in the queue is not run."""
        self.results += [{"command": line, "output": "not run: the program has ended"} for line in self.queue]
        self.queue = []

    def announce(self, breakpoints):
        """Tells the host, before the program goes on, what it may never tell otherwise."""
        self._channel.send({"interim": True, "results": self.results, "breakpoints": breakpoints})

    def answer(self, **facts):
        """Answers the request in hand with the results and these facts."""
        flush_output()
        reply = dict(facts, results=self.results, **self._rest)
        self.in_hand, self._rest = False, {}
        self._note(None)
        self._channel.send(reply)

    def close(self):
        """Ends the conversation."""
        self._channel.close()

    # - between processes: a checkpoint answers what another process was asked

    def as_data(self):
        """All that another process needs to answer in the place of this one."""
        return {"queue": self.queue, "results": self.results, "nonce": self._channel.nonce}

    def take_over(self, data):
        """Goes on where another process was, given its `as_data`."""
        self.queue, self.results, self._channel.nonce = data["queue"], data["results"], data["nonce"]
        self.in_hand = True

    def drop(self):
        """Forgets the request: whoever asked has been told that there is no answer."""
        self.in_hand, self.queue = False, []

    def tell_gone(self, nonce, code):
        """Tells the host that the program has ended, with this exit code, without answering a request."""
        self._channel.nonce = nonce
        self._channel.send({"gone": code})
