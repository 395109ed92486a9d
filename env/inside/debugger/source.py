"""Modules whose functions are compiled alone or changed as they are loaded.

Compiling a file of thousands of lines takes longer than many tests. Most changes are inside one function, so only that
function is parsed and compiled again, at its own line numbers, and takes its place in the code of the module.

A trace function slows down a whole program, so tracing should begin only when there is something to stop at. From
Python 3.8 on, modules are compiled here with a call at the beginning of functions that contain given lines, on the line
of their `def`. The call raises an audit event when the function is entered, so that no trace function or profiler of
the program sees a frame of ours. Code of such a function that is moved to another process does not run there.
"""

import __future__

import ast
import builtins
import contextlib
import importlib.machinery
import importlib.util
import sys
import types
import warnings

from .files import descend, last_line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*_FUNCTIONS, ast.ClassDef)
_FEATURES = [(name, getattr(__future__, name).compiler_flag) for name in __future__.all_feature_names]


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

    def function_at(self, line):
        """The outermost function with a line in its body; None where the whole module has to be compiled."""
        if self.code is None or not hasattr(types.CodeType, "replace"):
            return None
        for node in self._body:
            owner = node if isinstance(node, ast.ClassDef) else None
            for function in owner.body if owner else [node]:
                if isinstance(function, _FUNCTIONS) and is_in_body(function, line):
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


def first_line(node):
    """The first line of a statement, with its decorators."""
    return min(each.lineno for each in [node, *getattr(node, "decorator_list", ())])


def is_in_body(function, line):
    """Whether a line belongs to a function's body, and to no other part of the function."""
    return last_line(function) >= line >= first_line(function.body[0]) > _header_line(function)


def _header_line(function):
    """The last line of the parts of a `def` other than its body, as far as that is known."""
    parts = [function, *ast.walk(function.args), *ast.walk(function.returns or function.args)]
    return max(getattr(part, "lineno", 0) for part in parts)


def load_from(code_for):
    """Has source files that are imported from now on loaded from other code.

    Args:
        code_for: takes the loader and the path, returns the code, or None to use what the loader itself compiles.
    """
    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code

    def get_other(self, fullname):
        code = code_for(self, self.get_filename(fullname))
        return get_code(self, fullname) if code is None else code

    loader.get_code = get_other


def yields(function):
    """Whether a function is a generator."""
    left = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*SCOPES, ast.Lambda)):
            left.extend(ast.iter_child_nodes(node))
    return False


EVENT = "gumshoe.entered"
"""The audit event that is raised in the frame of the function."""
_REPORT = "__gumshoe_entered__"
_LATER = (ast.Lambda, ast.GeneratorExp)


class EntryReports:
    """The functions that report, in modules that are imported from now on.

    Functions that can be left and resumed do not report, nor do modules with such a line outside of functions, modules
    that warn when they are compiled, and modules with a loader of their own.

    Args:
        lines_in: takes a file name, returns the given lines in it.
    """

    def __init__(self, lines_in):
        self._lines_in = lines_in
        self._modules = []
        self._lines = {}

    def install(self):
        """Has modules compiled this way from now on."""
        setattr(builtins, _REPORT, sys.audit)
        load_from(self._code_for)

    def includes(self, module):
        """Whether a code object is that of a module in which every function with one of the lines reports."""
        return any(each is module for each in self._modules)

    def is_report(self, code, line):
        """Whether a line of a function is that of its report, which no function reaches otherwise."""
        return self._lines.get((code.co_filename, code.co_firstlineno, code.co_name)) == line

    def _code_for(self, loader, path):
        is_plain = type(loader) is importlib.machinery.SourceFileLoader and sys.gettrace() is None
        lines = self._lines_in(path) if is_plain else ()
        return self._compile(loader.get_data(path), path, lines) if lines else None

    def _compile(self, data, path, lines):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                tree = ast.parse(data, path)
                functions = {_function_at(tree, line) for line in lines}
                if None in functions:
                    return None
                for function in functions:
                    _insert_report(function)
                code = compile(tree, path, "exec", 0, True)
            except (SyntaxError, ValueError, RecursionError):
                return None
        if caught:
            return None
        self._modules.append(code)
        self._lines.update({(path, first_line(each), each.name): each.lineno for each in functions})
        return code


def _function_at(tree, line):
    """The function with a line in its body, if the line can only run during a call of the function; else None."""
    found = None
    for node in ast.walk(tree):
        if not hasattr(node, "lineno") or not first_line(node) <= line <= last_line(node):
            continue
        if isinstance(node, _LATER):
            return None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_in_body(node, line):
            found = node if found is None or found.lineno < node.lineno else found
    return found if isinstance(found, ast.FunctionDef) and not yields(found) and not _is_empty(found) else None


def _is_empty(function):
    return len(function.body) == 1 and ast.get_docstring(function) is not None


def _insert_report(function):
    """Puts the call after the docstring; the line of the `def` is the only one sure to have no line event."""
    report = ast.parse("{}({!r})".format(_REPORT, EVENT)).body[0]
    for node in ast.walk(report):
        node.lineno = node.end_lineno = function.lineno
        node.col_offset = node.end_col_offset = function.col_offset
    function.body.insert(0 if ast.get_docstring(function, clean=False) is None else 1, report)
