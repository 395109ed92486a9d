"""Changes one line of a module as it is imported, in memory.

`do` says how: `skip` leaves the line out, `true` and `false` force the condition of an `if` or `while`, `condition
EXPRESSION` replaces that condition, `iterate EXPRESSION` lets a `for` iterate over something else, `return EXPRESSION`
leaves the function, `replace CODE` runs other code instead; anything else is code that runs before the line, such as
`x = 3`. A line stands for all statements that begin on it, with their blocks, but not for a `def` or `class` around
them; `time` and `when` are checked before it. (Forced branches: X. Zhang, N. Gupta, R. Gupta: Locating Faults through
Automated Predicate Switching, ICSE 2006. Replaced values: D. Jeffrey, N. Gupta, R. Gupta: Fault Localization using
Value Replacement, ISSTA 2008.)

Compiling a file of thousands of lines takes longer than many tests. Most changes are inside one function, so only that
function is parsed and compiled again, at its own line numbers, and takes its place in the code of the module.
"""

import __future__

import ast
import builtins
import collections
import contextlib
import importlib.util
import os
import symtable
import types

from ..functions import FUNCTIONS, SCOPES, descend, first_line, is_in_body, last_line, yields
from ..programs.project import load_from

_write = os.write

HIT = "__gumshoe_hit__"
"""The builtin that changed code calls to ask whether its change takes effect this time."""
MOST_HITS = 1000
"""How many hits are counted."""
HEADERS = {
    "condition": ((ast.If, ast.While), "test", "condition of an if or while"),
    "iterate": ((ast.For, ast.AsyncFor), "iter", "for"),
}
"""Replaceable parts of statements: kinds of statements, field, what it is called."""
_FEATURES = [(name, getattr(__future__, name).compiler_flag) for name in __future__.all_feature_names]


class Variant:
    """What a request asks for: the change `do` at a `line` of the file `path`.

    It takes effect only the n-th time, if `time` says n, and only if the expression `when` is true.
    """

    def __init__(self, path, line, do, time=None, when=None):
        self.path = path
        self.line = line
        self.do = do.strip()
        self.time = time
        self.when = when

    def hit(self):
        """The expression that says whether the change takes effect now. Raises ChangeError."""
        call = "{}({!r})".format(HIT, self.time or 0)
        return _expression("({}) and {}".format(self.when, call) if self.when else call)


Change = collections.namedtuple("Change", ("path", "code", "former"))
"""A module's path, its changed code, and its unchanged code, None where that cannot be compiled."""


class ChangeError(Exception):
    """A change that cannot be made; its text says why."""


class ModuleSource:
    """A module's file as it is now.

    Attributes:
        path: its path.
        text: its source.
        code: its code; None if it cannot be compiled, as with a `return` outside of functions.
    """

    def __init__(self, path):
        """Raises OSError; also SyntaxError, ValueError or LookupError if the file is not Python."""
        with open(path, "rb") as file:
            self.text = importlib.util.decode_source(file.read())
        self.path = path
        tree = ast.parse(self.text, path)
        self._body = tree.body
        self.code = None
        with contextlib.suppress(SyntaxError, ValueError):
            self.code = compile(tree, path, "exec", 0, True)

    def change(self, variant):
        """What a variant makes of the module. Raises ChangeError."""
        return Change(self.path, self._changed_code(variant), self.code)

    def _changed_code(self, variant):
        function = self.function_at(variant.line)
        if function is not None:
            with contextlib.suppress(SyntaxError, ValueError):  # lines that form a statement only with those around
                code = function.compile(_changed_tree(variant, function.text, self.path))
                if code is not None:
                    return code
        try:
            return compile(_changed_tree(variant, self.text, self.path), self.path, "exec", 0, True)
        except (SyntaxError, ValueError) as error:
            raise ChangeError("{}: {}".format(variant.do, error)) from None

    def function_at(self, line):
        """The outermost function with a line in its body; None where the whole module has to be compiled."""
        if self.code is None or not hasattr(types.CodeType, "replace"):
            return None
        for node in self._body:
            owner = node if isinstance(node, ast.ClassDef) else None
            for function in owner.body if owner else [node]:
                if isinstance(function, FUNCTIONS) and is_in_body(function, line):
                    is_generic = any(getattr(each, "type_params", None) for each in (function, owner))
                    return None if is_generic else OneFunction(self, function, owner)
        return None


class OneFunction:
    """A function of a module, or of a class in it. Constants that it shares with the module are not the same objects.

    Attributes:
        text: its source, at its own line numbers, after what the module imports from `__future__`.
    """

    def __init__(self, source, function, owner):
        self._source = source
        self._owners = [owner.name] if owner else []
        self._name = function.name
        first = first_line(function)
        before = [""] * (first - 1)
        features = [name for name, flag in _FEATURES if source.code.co_flags & flag]
        if features:
            before[0] = "from __future__ import " + ", ".join(features)
        if owner:
            before[-1] = "class {}:".format(owner.name)
        # A backslash at the end of the last line continues onto an empty one.
        lines = [*source.text.split("\n")[first - 1 : last_line(function)], "", ""]
        self.text = "\n".join(before + lines)

    def compile(self, tree):
        """The module's code with that of the tree in its place; None where more than the function would change.

        Raises SyntaxError or ValueError.
        """
        changed = descend(compile(tree, self._source.path, "exec", 0, True), [*self._owners, self._name])
        return None if changed is None else _with_function(self._source.code, self._owners, changed)


def _with_function(code, owners, function):
    """A code object with a function in place of the one that begins on the same line, in the classes named `owners`;
    None if there is no such function, or if it has another name or other free variables.
    """
    for former in code.co_consts:
        if not isinstance(former, types.CodeType) or former.co_name != (owners[0] if owners else function.co_name):
            continue
        if owners:
            later = _with_function(former, owners[1:], function)
        else:
            later = function if _place(former) == _place(function) else None
        if later is not None:
            return code.replace(co_consts=tuple(later if each is former else each for each in code.co_consts))
    return None


def _place(code):
    """What a function must have in common with another to take its place."""
    return code.co_firstlineno, code.co_freevars, getattr(code, "co_qualname", None)


def _changed_tree(variant, text, path):
    """The changed tree of a module, or of a part of it. Raises ChangeError; SyntaxError for a bad part."""
    tree = ast.parse(text, path)
    block, index, scopes = _find(tree, variant.line, _kinds_for(variant.do))
    if block is None:
        block, index, scopes = _find(tree, variant.line, ast.stmt)
    if block is None:
        raise ChangeError("{}:{} is no statement".format(variant.path, variant.line))
    end = index + 1
    while end < len(block) and block[end].lineno == block[index].lineno:
        end += 1
    was_generator = not scopes or yields(scopes[-1])
    block[index:end] = _changed(block[index:end], variant.do, variant.hit())
    if not was_generator and yields(scopes[-1]):
        raise ChangeError("this would turn {} into a generator".format(scopes[-1].name))
    _declare(variant.do, scopes, text, path)
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
        inner = [*scopes, node] if isinstance(node, FUNCTIONS) else scopes
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


def _changed(statements, do, hit):
    """What replaces the statements of a line. Raises ChangeError."""
    word, _, rest = do.partition(" ")
    first = statements[0]
    if do == "skip":
        return [ast.If(test=hit, body=[ast.Pass()], orelse=statements)]
    if do.lower() in ("true", "false"):
        if not isinstance(first, (ast.If, ast.While)):
            raise ChangeError("line {} has no condition of an if or while to force".format(first.lineno))
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
        names = [node for node in ast.walk(ast.parse(do)) if isinstance(node, ast.Name)]
    except SyntaxError:
        return
    assigned = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    scope = scopes[-1]
    table = next(
        table
        for table in _function_tables(symtable.symtable(text, path, "exec"))
        if table.get_name() == scope.name and table.get_lineno() in (scope.lineno, first_line(scope))
    )
    known = {symbol.get_name(): symbol for symbol in table.get_symbols()}
    outer = [name for name in assigned if name in known and known[name].is_free()]
    shared = [name for name in assigned if name in known and known[name].is_global()]
    first = [ast.Nonlocal(names=outer)] if outer else []
    first += [ast.Global(names=shared)] if shared else []
    scope.body[:0] = first


def _function_tables(table):
    """The symbol tables of all functions below a table."""
    for child in table.get_children():
        if isinstance(child, symtable.Function):
            yield child
        for inner in _function_tables(child):
            yield inner


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
