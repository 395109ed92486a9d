"""The source of a module, one function of which can be compiled alone. Standard library only, Python 3.6 to 3.14.

Compiling a file of thousands of lines takes longer than many tests. Most changes are inside one function, so only that
function is parsed and compiled again, at its own line numbers, and takes its place in the code of the module.
"""

import __future__

import ast
import contextlib
import importlib.machinery
import importlib.util
import types

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
