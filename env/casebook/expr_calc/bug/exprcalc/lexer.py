"""Text to tokens."""

import re
from typing import List, NamedTuple


class SyntaxFault(ValueError):
    """The text is not an expression."""


class Token(NamedTuple):
    """`kind` is number, name, open, close, comma, operator, sign or end."""

    kind: str
    text: str
    position: int


PATTERN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<open>\()|(?P<close>\))|(?P<comma>,)|(?P<operator>[-+*/%^])|(?P<other>.)"
)
OPERAND_ENDS = ("number", "name")


def tokenize(text) -> List[Token]:
    """Return the tokens of `text`, with an end token. A minus in front of an operand is a sign."""
    tokens = []
    previous = "end"
    for match in PATTERN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            continue
        if kind == "other":
            raise SyntaxFault("unexpected {!r} at {}".format(match.group(), match.start()))
        if match.group() == "-" and previous not in OPERAND_ENDS:
            kind = "sign"
        tokens.append(Token(kind, match.group(), match.start()))
        previous = kind
    tokens.append(Token("end", "", len(text)))
    return tokens
