"""Tokens to a tree of tuples, by precedence climbing.

A tree is ("number", value), ("name", text), ("neg", tree), ("call", name, trees) or (operator, left, right).
"""

from .lexer import SyntaxFault, tokenize

STRENGTH = {"+": 10, "-": 10, "*": 20, "/": 20, "%": 20, "^": 40}
SIGN_STRENGTH = 30
RIGHT_TO_LEFT = {"^"}
STARTS_OPERAND = ("number", "name", "open", "sign")


class Parser:
    """Reads one expression."""

    def __init__(self, text):
        self._tokens = tokenize(text)
        self._index = 0

    def parse(self):
        """Return the tree of the whole text."""
        tree = self._expression(0)
        self._expect("end")
        return tree

    def _peek(self):
        return self._tokens[self._index]

    def _next(self):
        token = self._peek()
        self._index += 1
        return token

    def _expect(self, kind):
        token = self._next()
        if token.kind != kind:
            raise SyntaxFault("expected {} at {}".format(kind, token.position))
        return token

    def _expression(self, least):
        left = self._operand()
        while True:
            operator = self._operator()
            if operator is None or STRENGTH[operator] < least:
                return left
            if self._peek().kind == "operator":
                self._next()
            floor = STRENGTH[operator] if operator in RIGHT_TO_LEFT else STRENGTH[operator] + 1
            left = (operator, left, self._expression(floor))

    def _operator(self):
        """Return the operator that follows; two operands side by side are multiplied."""
        token = self._peek()
        if token.kind == "operator":
            return token.text
        return "*" if token.kind in STARTS_OPERAND else None

    def _operand(self):
        token = self._next()
        if token.kind == "number":
            return ("number", float(token.text))
        if token.kind == "sign":
            return ("neg", self._expression(SIGN_STRENGTH))
        if token.kind == "open":
            tree = self._expression(0)
            self._expect("close")
            return tree
        if token.kind == "name":
            following = self._peek()
            adjacent = following.position == token.position + len(token.text)
            if following.kind == "open" and adjacent:
                return ("call", token.text, self._arguments())
            return ("name", token.text)
        raise SyntaxFault("expected a value at {}".format(token.position))

    def _arguments(self):
        self._expect("open")
        trees = [self._expression(0)]
        while self._peek().kind == "comma":
            self._next()
            trees.append(self._expression(0))
        self._expect("close")
        return trees
