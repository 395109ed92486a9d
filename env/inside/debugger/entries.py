"""Makes functions that contain given lines report when they are entered. Standard library only, Python 3.8 to 3.14.

A trace function slows down a whole program, so tracing should begin only when there is something to stop at. Modules
are compiled here with a call at the beginning of such functions, on the line of their `def`. The call raises an audit
event, so that no trace function or profiler of the program sees a frame of ours. Code of such a function that is moved
to another process does not run there.
"""

import ast
import builtins
import importlib.machinery
import sys
import warnings

from .files import last_line
from .source import first_line, is_in_body, load_from, yields

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
