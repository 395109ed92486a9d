"""Sites of a test file that can be made false: the comparisons of its tests, assertions put at their end, and the exits
of a script.

A site has a text for each thing that it can be asked for: KEPT, OTHER and WRONG, see `source`. All have the same length
and the same number of lines. Which is which cannot be seen without evaluating it.
"""

import ast
import re
import string

from ..functions import SCOPES, first_line, last_line, nodes_in
from .source import Piece, Site

_EQUAL = re.compile(r"assert\w*Equals?|assert_\w*(equal|close)\w*|eq_|assertIs|assertIn|assertAlmostEqual")
_NEGATIVE = re.compile(r"not|less|greater|raises|warns", re.IGNORECASE)
_SWALLOWS = re.compile(r"suppress|raises|AssertionError|Exception", re.IGNORECASE)
_OPERATORS = (ast.Eq, ast.Is, ast.In)
_ASSERT = 'assert len("{word}") == {number}'
_UNITTEST = {
    "assertEqual": '{self}.assertEqual(len("{word}"), {number})',
    "assertTrue": '{self}.assertTrue(len("{word}") == {number})',
    "assertFalse": '{self}.assertFalse(len("{word}") != {number})',
    "assertIn": '{self}.assertIn(len("{word}"), [{number}])',
    "assertIs": '{self}.assertIs(len("{word}") == {number}, len("") == 0)',
    "assertListEqual": '{self}.assertListEqual([len("{word}")], [{number}])',
    "assertTupleEqual": '{self}.assertTupleEqual((len("{word}"),), ({number},))',
    "assertDictEqual": '{self}.assertDictEqual({{"": len("{word}")}}, {{"": {number}}})',
    "assertSetEqual": '{self}.assertSetEqual({{len("{word}")}}, {{{number}}})',
    "assertCountEqual": '{self}.assertCountEqual([len("{word}")], [{number}])',
    "assertSequenceEqual": '{self}.assertSequenceEqual([len("{word}")], [{number}])',
    "assertAlmostEqual": '{self}.assertAlmostEqual(len("{word}"), {number})',
    "assertMultiLineEqual": '{self}.assertMultiLineEqual(str(len("{word}")), "{number}")',
}
_HELPER = """
def {name}(wrong, check, *values, **options):
    try:
        result = check(*values, **options)
    except Exception:
        if wrong:
            return None
        raise
    if wrong:
        raise AssertionError
    return result
"""
"""Calls `check`, such as `assertEqual`, with its own arguments. Where `wrong` is true, the call has to fail: the helper
returns then, and raises AssertionError if it does not fail.
"""
_EXITS = {ast.dump(ast.parse(text, mode="eval").body) for text in ("sys.exit", "exit")}


class Falsifier:
    """Finds the sites of one file.

    Args:
        file: its TestFile.
        chance: draws what the sites look like.
    """

    def __init__(self, file, chance):
        self._file, self._chance = file, chance
        self._helper = None

    def comparisons(self, function):
        """Those of a function, in their order; none before Python 3.8, where the ends of nodes are unknown."""
        if not hasattr(function, "end_lineno"):
            return []
        found = []
        certain = _certain_statements(function)
        for node in nodes_in(function):
            if isinstance(node, ast.Assert):
                for each in node.test.values if _is_and(node.test) else [node.test]:
                    if isinstance(each, ast.Compare) and len(each.ops) == 1 and isinstance(each.ops[0], _OPERATORS):
                        found.append(Site(self._in_assert(node, each), node in certain))
            elif isinstance(node, ast.Expr) and _is_check(node.value):
                found.append(Site(self._in_call(node.value), node in certain))
        # Those of one assertion begin at the same place, and are in their order already.
        return sorted(found, key=lambda site: site.pieces[0].start)

    def end_assertions(self, function):
        """Assertions at the end of a function, and before each return. None where they might be caught, or not be
        reached.
        """
        returns = list(_returns(function.body))
        if any(guarded for _, guarded in returns):
            return []
        forms = _forms(function)
        ends = [self._assertions_before(node, forms) for node, _ in returns]
        last = function.body[-1]
        if isinstance(last, ast.Raise):
            ends.append(self._assertions_before(last, forms))
        elif not isinstance(last, ast.Return):
            ends.append(self._assertions_after(last, function, forms))
        return ends

    def script_end(self):
        """The same for a script, which ends at its last line; see `script_exits`."""
        end = len(self._file.text)
        return [self._assertions(end, end, "\n{}\n", [_ASSERT])]

    def script_exits(self):
        """The calls of `sys.exit` in a script, whose status says whether it has passed."""
        found = []
        for node in ast.walk(self._file.tree) if hasattr(ast, "NamedExpr") else ():
            if isinstance(node, ast.Call) and ast.dump(node.func) in _EXITS and len(node.args) < 2:
                if node.args:
                    start, end = self._file.span(node.args[0])
                    pieces = [Piece(start, start, "(("), Piece(end, end, "), 1)[0]", "), 1)[1]")]
                else:
                    end = self._file.span(node)[1] - 1
                    pieces = [Piece(end, end, "(0, 1)[0]", "(0, 1)[1]")]
                found.append(Site(pieces))
        return found

    def helper(self):
        """The function that calls of `comparisons` need, at the end of the file; none if they need none."""
        end = len(self._file.text)
        return [] if self._helper is None else [Site([Piece(end, end, _HELPER.format(name=self._helper))])]

    def _in_assert(self, statement, node):
        """A comparison in an assertion: `a == b` becomes `(not a == ((b), 77798)[0]) == ("bvdn" < "appb")`."""
        start, end = self._file.span(node)
        # A failed assertion is reported at the first line of the statement, so that line belongs to the site, too.
        first = self._file.span(statement)[0]
        right = node.comparators[0]
        left_is_literal = _is_literal(node.left) and not _is_literal(right)
        operand = node.left if left_is_literal or isinstance(node.ops[0], ast.In) else right
        no, yes = (") == ({})".format(text) for text in self._order())
        before, after = self._either(operand)
        return [Piece(first, first, ""), Piece(start, start, "(not "), before, after, Piece(end, end, no, yes, no)]

    def _in_call(self, node):
        """A comparison by a call: `eq_(a, b)` becomes `_xyzvw("bvdn" < "appb", eq_, a, ((b), 77798)[0])`. That helper
        makes the call, and where its first argument is true, the call has to fail.
        """
        start = self._file.span(node)[0]
        left, right = node.args[:2]
        is_first = _called(node) == "assertIn" or (_is_literal(left) and not _is_literal(right))
        self._helper = self._helper or "_" + self._word(5)
        helper = self._helper
        no, yes = (helper + "(" + text + ", " for text in self._order())
        bracket = self._file.text.index("(", self._file.span(node.func)[1])
        before, after = self._either(left if is_first else right)
        return [Piece(start, start, no, yes, no), Piece(bracket, bracket + 1, ", "), before, after]

    def _order(self):
        """A false and a true expression."""
        low, high = "a" + self._word(3), "b" + self._word(3)
        return '"{}" < "{}"'.format(high, low), '"{}" < "{}"'.format(low, high)

    def _either(self, operand):
        """The pieces around an operand that make it itself, or another value: one of two, of which an index picks
        one.
        """
        start, end = self._file.span(operand)
        other = '"{}"'.format(self._word(5))
        value = getattr(operand, "value", getattr(operand, "n", None))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            other = str(self._chance.randrange(10000, 99999))
        if self._chance.randrange(2):
            return Piece(start, start, "({}, (".format(other)), Piece(end, end, "))[1]", "))[0]")
        before, after = "((", "), {})".format(other)
        return Piece(start, start, before), Piece(end, end, after + "[0]", after + "[1]")

    def _assertions_before(self, statement, forms):
        start = self._file.at(statement.lineno, statement.col_offset)
        return self._assertions(start, start, "{}; ", forms)

    def _assertions_after(self, last, function, forms):
        """Assertions after the last statement of a function."""
        first = first_line(function.body[0])
        line = self._file.logical_line(last_line(last))
        if self._file.logical_line(first) is self._file.logical_line(function.lineno):
            return self._assertions(line.end, line.end, " {}" if line.semicolon else "; {}", forms)
        # A line of its own shows which assertion has failed.
        start, end = self._file.below(line.last)
        return self._assertions(start, end, "\n" + self._file.indentation(first) + "{}", forms)

    def _assertions(self, start, end, frame, forms):
        """Assertions of each form that hold, or one of which is false, in the place of `{}` in the frame."""
        holding, false = [], []
        wrong = self._chance.randrange(len(forms))
        for place, form in enumerate(forms):
            number, other = self._chance.sample(range(3, 9), 2)
            word = self._word(number)
            holding.append(form.format(word=word, number=number))
            false.append(form.format(word=word, number=other if place == wrong else number))
        return Site([Piece(start, end, *(frame.replace("{}", "; ".join(texts)) for texts in (holding, false)))])

    def _word(self, length):
        return "".join(self._chance.choice(string.ascii_lowercase) for _ in range(length))


def _certain_statements(function):
    """The statements that run whenever the function ends well. Those in handlers, branches, loops and contexts, which
    may swallow what is raised before them, need not run, and neither need those after a possible return.
    """
    found = []
    for statement in function.body:
        if any(isinstance(each, ast.Return) for each in ast.walk(statement)):
            break
        found.append(statement)
    return found


def _returns(body, guarded=False):
    """(return statement, whether the test itself might catch what is raised there) of a function's body."""
    for node in body:
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, ast.Return):
            yield node, guarded
        contexts = [ast.dump(item.context_expr) for item in getattr(node, "items", ())]
        catches = bool(getattr(node, "handlers", ())) or any(map(_SWALLOWS.search, contexts))
        yield from _returns(getattr(node, "body", ()), guarded or catches)
        yield from _returns(getattr(node, "orelse", ()), guarded)
        # To return from here is to drop what was raised before.
        yield from _returns(getattr(node, "finalbody", ()), True)
        for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            yield from _returns(each.body, guarded)


def _forms(function):
    """The ways in which a test asserts: with the statement, and with the methods of its case that it uses."""
    forms = {"assert": _ASSERT}
    own = function.args.args[0].arg if function.args.args else None
    for node in nodes_in(function):
        method = node.func if isinstance(node, ast.Call) else None
        form = _UNITTEST.get(getattr(method, "attr", ""))
        if form and own and isinstance(method.value, ast.Name) and method.value.id == own:
            forms[method.attr] = form.replace("{self}", own)
    return [forms[name] for name in sorted(forms)]


def _is_check(node):
    """Whether an expression is a call that compares its first two arguments."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return False
    name = _called(node)
    is_plain = not any(isinstance(each, ast.Starred) for each in node.args[:2])
    return is_plain and bool(_EQUAL.fullmatch(name)) and not _NEGATIVE.search(name)


def _called(node):
    """The name of the function that a call is of, without what it is an attribute of."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _is_and(node):
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def _is_literal(node):
    return not any(isinstance(each, (ast.Name, ast.Call, ast.Attribute, ast.Await)) for each in ast.walk(node))
