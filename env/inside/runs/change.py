"""Changes one line of a module as it is imported, in memory.

`do` says how: `skip` leaves the line out, `true` and `false` force the condition of an `if` or `while`, `condition
EXPRESSION` replaces that condition, `iterate EXPRESSION` lets a `for` iterate over something else, `return EXPRESSION`
leaves the function, `replace CODE` runs other code instead; anything else is code that runs before the line, such as
`x = 3`. A line stands for all statements that begin on it, with their blocks, but not for a `def` or `class` around
them; `time` and `when` are checked before it. (Forced branches: X. Zhang, N. Gupta, R. Gupta: Locating Faults through
Automated Predicate Switching, ICSE 2006. Replaced values: D. Jeffrey, N. Gupta, R. Gupta: Fault Localization using
Value Replacement, ISSTA 2008.)
"""

import ast
import builtins
import contextlib
import os
import symtable

from ..debugger.files import last_line
from ..debugger.source import SCOPES, ModuleSource, first_line, load_from, yields

_write = os.write

HIT = "__gumshoe_hit__"
MOST_HITS = 1000
HEADERS = {
    "condition": ((ast.If, ast.While), "test", "condition of an if or while"),
    "iterate": ((ast.For, ast.AsyncFor), "iter", "for"),
}
"""Replaceable parts of statements: kinds of statements, field, what it is called."""


class Change:
    """A module's path, its changed code, and its unchanged code, None where that cannot be compiled."""

    def __init__(self, path, code, former):
        self.path = path
        self.code = code
        self.former = former


class ChangeError(Exception):
    """A change that cannot be made; its text says why."""


def transform(variant, source):
    """The changed code of a variant's module, given its source. Raises ChangeError."""
    function = source.function_at(variant["line"])
    if function is not None:
        with contextlib.suppress(SyntaxError, ValueError):  # lines that form a statement only with those around them
            code = function.compile(_changed_tree(variant, function.text, source.path))
            if code is not None:
                return code
    try:
        return compile(_changed_tree(variant, source.text, source.path), source.path, "exec", 0, True)
    except (SyntaxError, ValueError) as error:
        raise ChangeError("{}: {}".format(variant["do"], error)) from None


def _changed_tree(variant, text, path):
    """The changed tree of a module, or of a part of it. Raises ChangeError; SyntaxError for a bad part."""
    tree, line, do = ast.parse(text, path), variant["line"], variant["do"].strip()
    block, index, scopes = _find(tree, line, _kinds_for(do))
    if block is None:
        block, index, scopes = _find(tree, line, ast.stmt)
    if block is None:
        raise ChangeError("{}:{} is no statement".format(variant["path"], line))
    end = index + 1
    while end < len(block) and block[end].lineno == block[index].lineno:
        end += 1
    was_generator = not scopes or yields(scopes[-1])
    block[index:end] = _changed(block[index:end], do, _hit(variant))
    if not was_generator and yields(scopes[-1]):
        raise ChangeError("this would turn {} into a generator".format(scopes[-1].name))
    _declare(variant["do"], scopes, text, path)
    return ast.fix_missing_locations(tree)


def source_of(path):
    """The source of a module that is to be changed. Raises ChangeError."""
    try:
        return ModuleSource(os.path.abspath(path))
    except OSError as error:
        raise ChangeError("{}: {}".format(path, error.strerror)) from None
    except (SyntaxError, ValueError, LookupError) as error:
        raise ChangeError("{}: {}".format(path, error)) from None


def _kinds_for(do):
    """The kinds of statements that have the part to be changed; all kinds where the whole statement is changed."""
    word = "condition" if do.lower() in ("true", "false") else do.partition(" ")[0]
    return HEADERS[word][0] if word in HEADERS else ast.stmt


def _find(tree, line, kinds):
    """Finds a statement of the given kinds at a line: its block, its index there, and the functions around it.

    If several statements begin on the line, it is the first, such as an `if` with its block; a `def` or `class` gives
    way to what is in it.
    """
    best = (None, 0, [])
    found = [(tree, [])]
    while found:
        node, scopes = found.pop(0)
        inner = [*scopes, node] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scopes
        for _, value in ast.iter_fields(node):
            children = value if isinstance(value, list) else [value]
            for index, child in enumerate(children):
                if not isinstance(child, ast.AST):
                    continue
                found.append((child, inner))
                if isinstance(value, list) and isinstance(child, kinds) and _covers(child, line):
                    known = best[0][best[1]] if best[0] else None
                    if known is None or child.lineno > known.lineno or isinstance(known, SCOPES):
                        best = (value, index, inner)
    return best


def _covers(statement, line):
    """Whether a statement is at a line: it begins there, or it is a simple one that continues there."""
    if statement.lineno == line:
        return True
    if hasattr(statement, "body") or hasattr(statement, "cases"):
        return False
    return statement.lineno <= line <= last_line(statement)


def _hit(variant):
    """The expression that says whether the change takes effect now."""
    call = "{}({!r})".format(HIT, variant.get("time") or 0)
    when = variant.get("when")
    return _expression("({}) and {}".format(when, call) if when else call)


def _changed(statements, do, hit):
    """What replaces the statements of a line. Raises ChangeError."""
    word, _, rest = do.partition(" ")
    first = statements[0]
    if do == "skip":
        return [ast.If(test=hit, body=[ast.Pass()], orelse=statements)]
    if do.lower() in ("true", "false"):
        if not isinstance(first, (ast.If, ast.While)):
            raise ChangeError("line {} has no condition of an if or while to force".format(first.lineno)) from None
        first.test = ast.IfExp(test=hit, body=_expression(do.capitalize()), orelse=first.test)
        return statements
    if word in HEADERS:
        kinds, field, what = HEADERS[word]
        if not isinstance(first, kinds):
            raise ChangeError("line {} has no {}".format(first.lineno, what))
        setattr(first, field, ast.IfExp(test=hit, body=_expression(rest.strip()), orelse=getattr(first, field)))
        return statements
    if word == "replace":
        return [ast.If(test=hit, body=_statements(rest), orelse=statements)]
    return [ast.If(test=hit, body=_statements(do), orelse=[]), *statements]


def _statements(code):
    try:
        body = ast.parse("async def _():\n" + "\n".join(" " + line for line in code.split("\n"))).body[0].body
    except (SyntaxError, ValueError) as error:
        raise ChangeError("{}: {}".format(code, error)) from None
    return body


def _expression(code):
    try:
        return ast.parse(code, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise ChangeError("{}: {}".format(code, error)) from None


def _declare(do, scopes, text, path):
    """Makes code that assigns to a global, or to a variable of an outer function, refer to that variable."""
    if not scopes:
        return
    try:
        assigned = {node.id for node in ast.walk(ast.parse(do)) if isinstance(node, ast.Name) and _stored(node)}
    except SyntaxError:
        return
    table = symtable.symtable(text, path, "exec")
    for scope in scopes:
        inner = [each for each in table.get_children() if each.get_name() == scope.name]
        while inner and not any(_begins(each, scope) for each in inner):
            inner = inner[1:]
        table = next((each for each in inner if _begins(each, scope)), None) or _below(table, scope)
        if table is None:
            return
    known = {symbol.get_name(): symbol for symbol in table.get_symbols()}
    outer = [name for name in assigned if name in known and known[name].is_free()]
    shared = [name for name in assigned if name in known and known[name].is_global()]
    first = [ast.Nonlocal(names=outer)] if outer else []
    first += [ast.Global(names=shared)] if shared else []
    scopes[-1].body[:0] = first


def _below(table, scope):
    """The symbol table of a function somewhere below another, also inside classes."""
    for child in table.get_children():
        if child.get_name() == scope.name and _begins(child, scope):
            return child
        found = _below(child, scope) if child.get_type() == "class" else None
        if found is not None:
            return found
    return None


def _begins(table, scope):
    return table.get_lineno() in (scope.lineno, first_line(scope))


def _stored(node):
    return isinstance(node.ctx, ast.Store)


def count_hits(record):
    """Lets changed code record when it takes effect: each time adds a byte to a file."""
    count = [0]
    descriptor = os.open(record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def hit(time):
        count[0] += 1
        if time and count[0] != time:
            return False
        if count[0] <= MOST_HITS or time:
            _write(descriptor, b".")
        return True

    setattr(builtins, HIT, hit)


def install(change, record):
    """Has the module of a change loaded from its changed code, which counts its hits in a file."""
    path = os.path.realpath(change.path)
    count_hits(record)
    load_from(lambda _, loaded: change.code if os.path.realpath(loaded) == path else None)
