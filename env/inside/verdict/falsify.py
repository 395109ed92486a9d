"""Assertions that can be made false: those of a test, and those put at its end.

Each change has a text that keeps the meaning and one that makes an assertion false, of the same length and with the
same number of lines. Which is which cannot be seen without evaluating it.
"""

import ast
import re
import string

from ..functions import SCOPES, first_line, last_line, nodes_in
from .source import Replacement

_EQUAL = re.compile(r"assert\w*Equals?|assert_\w*(equal|close)\w*|eq_|assertIs|assertIn|assertAlmostEqual")
_NEGATIVE = re.compile(r"not|less|greater|raises|warns", re.IGNORECASE)
_SWALLOWS = re.compile(r"suppress|raises|AssertionError|Exception", re.IGNORECASE)
_OPERATORS = (ast.Eq, ast.Is, ast.In)
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
_ASSERT = ['assert len("{word}") == {number}']
_EXITS = {ast.dump(ast.parse(text, mode="eval").body) for text in ("sys.exit", "exit")}
KEPT, OTHER, WRONG = range(3)
"""What a comparison asks for: what it did; to be unequal to another value, as a right result is; to be equal to another
value, so that it fails. Lists of three texts have one for each.
"""


class ComparisonSite:
    """One comparison of a test that can ask for something else.

    Args:
        start, end: offsets of the statement or expression.
        inserts: offset, and the text for each of KEPT, OTHER and WRONG, in the order in which they stand.

    Attributes:
        always_runs: whether the test cannot pass without it.
    """

    def __init__(self, start, end, inserts):
        self.start, self.end, self._inserts = start, end, inserts
        self.always_runs = False

    def changes(self, kind, label):
        """The changes for a test that is kept in one variant and is of a kind in the other."""
        return [Replacement(start, end, (texts[KEPT], texts[kind]), label) for start, end, texts in self._inserts]


def comparisons(source, function, chance):
    """The comparisons of a function, in their order; none before Python 3.8, where the ends of nodes are unknown."""
    if not hasattr(function, "end_lineno"):
        return []
    found = []
    certain = _certain_statements(function)
    for node in nodes_in(function):
        known = len(found)
        if isinstance(node, ast.Assert):
            for each in node.test.values if _is_and(node.test) else [node.test]:
                if isinstance(each, ast.Compare) and len(each.ops) == 1 and isinstance(each.ops[0], _OPERATORS):
                    found.append(_in_assert(source, node, each, chance))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = getattr(node.value.func, "attr", getattr(node.value.func, "id", ""))
            plain = len(node.value.args) > 1 and not any(isinstance(each, ast.Starred) for each in node.value.args[:2])
            if plain and _EQUAL.fullmatch(name) and not _NEGATIVE.search(name):
                found.append(_in_call(source, node.value, name, chance))
        for site in found[known:]:
            site.always_runs = node in certain
    return sorted(found, key=lambda each: each.start)


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


def _in_assert(source, statement, node, chance):
    """A comparison in an assertion: `a == b` becomes `(not a == ((b), 77798)[0]) == ("bvdn" < "appb")`."""
    start, end = source.span(node)
    # A failed assertion is reported at the first line of the statement, so that line belongs to the site, too.
    first = source.span(statement)[0]
    right = node.comparators[0]
    left_is_literal = _is_literal(node.left) and not _is_literal(right)
    operand = node.left if left_is_literal or isinstance(node.ops[0], ast.In) else right
    no, yes = (") == ({})".format(text) for text in _order(chance))
    before, after = _either(source, operand, chance)
    opened = (start, start, ["(not "] * 3)
    return ComparisonSite(start, end, [(first, first, [""] * 3), opened, before, after, (end, end, [no, yes, no])])


def _in_call(source, node, name, chance):
    """A comparison by a call: `eq_(a, b)` becomes `_xyzvw("bvdn" < "appb", eq_, a, ((b), 77798)[0])`. That helper makes
    the call, and where its first argument is true, the call has to fail.
    """
    start, end = source.span(node)
    operands = node.args[:2]
    first = name == "assertIn" or (_is_literal(operands[0]) and not _is_literal(operands[1]))
    source.helper = source.helper or "_" + _word(chance, 5)
    no, yes = ("{}({}, ".format(source.helper, text) for text in _order(chance))
    bracket = source.text.index("(", source.span(node.func)[1])
    before, after = _either(source, operands[0 if first else 1], chance)
    return ComparisonSite(
        start, end, [(start, start, [no, yes, no]), (bracket, bracket + 1, [", "] * 3), before, after]
    )


def _order(chance):
    """A false and a true expression."""
    low, high = "a" + _word(chance, 3), "b" + _word(chance, 3)
    return '"{}" < "{}"'.format(high, low), '"{}" < "{}"'.format(low, high)


def _either(source, operand, chance):
    """The texts around an operand that make it itself, or another value: one of two, of which an index picks one."""
    start, end = source.span(operand)
    other = '"{}"'.format(_word(chance, 5))
    value = getattr(operand, "value", getattr(operand, "n", None))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        other = str(chance.randrange(10000, 99999))
    if chance.randrange(2):
        before, after, its, others = "({}, (".format(other), "))[{}]", 1, 0
    else:
        before, after, its, others = "((", "), {})[{}]".format(other, "{}"), 0, 1
    texts = [after.format(its), after.format(others), after.format(others)]
    return (start, start, [before] * 3), (end, end, texts)


def end_assertions(source, function, chance):
    """The assertions that are put at the end of a function, and before each return: for each place its start and end,
    a template with `{}` for the assertions, and these as a pair of a text that holds and one that is false. Empty where
    an assertion might be caught or not be reached.
    """
    places = []
    if not _find_returns(source, function.body, False, places):
        return []
    last = function.body[-1]
    forms = _forms(function)
    if isinstance(last, (ast.Return, ast.Raise)):
        if isinstance(last, ast.Raise):
            places.append((source.at(last.lineno, last.col_offset), None, "{}; "))
    else:
        first = first_line(function.body[0])
        end_line, end, semicolon = source.logical_line(last_line(last))
        if source.logical_line(first) == source.logical_line(function.lineno):
            places.append((end, None, " {}" if semicolon else "; {}"))
        else:  # A line of its own shows which assertion has failed.
            places.append((*source.below(end_line), "\n" + source.indentation(first) + "{}"))
    return [(start, start if end is None else end, frame, _pair(forms, chance)) for start, end, frame in places]


def script_end(source, chance):
    """The same for a script, which ends at its last line; see `script_exits`."""
    return [(len(source.text), len(source.text), "\n{}\n", _pair(_ASSERT, chance))]


def script_exits(source, tree):
    """Comparisons for the calls of `sys.exit`, whose status says whether a script has passed."""
    found = []
    for node in ast.walk(tree) if hasattr(ast, "NamedExpr") else ():
        if isinstance(node, ast.Call) and ast.dump(node.func) in _EXITS and len(node.args) < 2:
            start, end = source.span(node)
            if node.args:
                low, high = source.span(node.args[0])
                inserts = [(low, low, ["(("] * 3), (high, high, ["), 1)[0]", "), 1)[1]", "), 1)[1]"])]
            else:
                inserts = [(end - 1, end - 1, ["(0, 1)[0]", "(0, 1)[1]", "(0, 1)[1]"])]
            found.append(ComparisonSite(start, end, inserts))
    return found


def _pair(forms, chance):
    """Assertions of each form that hold, and the same with one of them false."""
    holding, false = [], []
    wrong = chance.randrange(len(forms))
    for place, form in enumerate(forms):
        number, other = chance.sample(range(3, 9), 2)
        word = _word(chance, number)
        holding.append(form.format(word=word, number=number))
        false.append(form.format(word=word, number=other if place == wrong else number))
    return "; ".join(holding), "; ".join(false)


def _forms(function):
    """The ways in which a test asserts: with the statement, and with the methods of its case that it uses."""
    forms = {"assert": _ASSERT[0]}
    own = function.args.args[0].arg if function.args.args else None
    for node in nodes_in(function):
        method = node.func if isinstance(node, ast.Call) else None
        form = _UNITTEST.get(getattr(method, "attr", ""))
        if form and own and isinstance(method.value, ast.Name) and method.value.id == own:
            forms[method.attr] = form.replace("{self}", own)
    return [forms[name] for name in sorted(forms)]


def _find_returns(source, body, guarded, places):
    """Adds the places before returns; False where what is raised there might be caught by the test itself."""
    for node in body:
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, ast.Return):
            if guarded:
                return False
            places.append((source.at(node.lineno, node.col_offset), None, "{}; "))
        catches = bool(getattr(node, "handlers", ())) or any(
            _SWALLOWS.search(ast.dump(item.context_expr)) for item in getattr(node, "items", ())
        )
        if any(isinstance(each, ast.Return) for last in getattr(node, "finalbody", ()) for each in ast.walk(last)):
            return False
        blocks = [(getattr(node, "body", ()), guarded or catches), (getattr(node, "orelse", ()), guarded)]
        blocks += [(each.body, guarded) for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        if not all(_find_returns(source, inner, still, places) for inner, still in blocks):
            return False
    return True


def _is_and(node):
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def _is_literal(node):
    return not any(isinstance(each, (ast.Name, ast.Call, ast.Attribute, ast.Await)) for each in ast.walk(node))


def _word(chance, length):
    return "".join(chance.choice(string.ascii_lowercase) for _ in range(length))


def helper(source):
    """The function that the changed calls need, to be put at the end of a file."""
    return (
        []
        if source.helper is None
        else [Replacement(len(source.text), len(source.text), (_HELPER.format(name=source.helper),) * 2)]
    )
