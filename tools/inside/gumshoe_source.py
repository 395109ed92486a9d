"""The source of a module, of which one function can be compiled alone. Standard library only, Python 3.6 to 3.14.

Compiling a file of thousands of lines takes longer than many tests. Most changes are inside one function, so only that
one is parsed and compiled again, on the lines where it is, and takes its place in the code of the module.
"""

import __future__

import ast
import importlib.machinery
import importlib.util
import types
import warnings

from gumshoe_files import descend, last_line

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FEATURES = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]


class ModuleSource:
    """A module's file as it is now.

    Attributes:
        path: its path.
        text: its source.
    """

    def __init__(self, path):
        """Raises OSError, and SyntaxError or ValueError where it is no Python."""
        with open(path, "rb") as file:
            self.text = importlib.util.decode_source(file.read())
        self.path = path
        self._body = parse(self.text, path).body
        self._code = None

    def parts(self, line):
        """What can be compiled with a change at a line: the function around it, if that is possible, and the whole."""
        return [*self._function_at(line), WholeModule(self)]

    def code(self):
        """The code of the module as it is."""
        if self._code is None:
            self._code = compile_quietly(self.text, self.path)
        return self._code

    def _function_at(self, line):
        """The outermost function with a line in its body, in a list that is empty where there is none."""
        if not hasattr(types.CodeType, "replace"):
            return []
        for node in self._body:
            owner = node if isinstance(node, ast.ClassDef) else None
            for function in owner.body if owner else [node]:
                if isinstance(function, _FUNCTIONS) and is_in_body(function, line):
                    is_generic = any(getattr(each, "type_params", None) for each in (function, owner))
                    return [] if is_generic else [OneFunction(self, function, owner)]
        return []


class WholeModule:
    """All of a module. Attributes: `text`, its source."""

    def __init__(self, source):
        self.text = source.text
        self._path = source.path

    def compile(self, tree):
        """The code of a tree in place of that of the text. Raises SyntaxError or ValueError."""
        return compile_quietly(tree, self._path)


class OneFunction:
    """A function of a module, or of a class in it. Attributes: `text`, its source, on the lines where it is."""

    def __init__(self, source, function, owner):
        self._source = source
        self._names = [owner.name] if owner else []
        self._name = function.name
        first = first_line(function)
        header = ["class {}:".format(name) for name in self._names]
        lines = source.text.split("\n")[first - 1 : last_line(function)]
        self.text = "\n".join([*[""] * (first - 1 - len(header)), *header, *lines, ""])

    def compile(self, tree):
        """The code of the module, with that of the tree in its place; None where more than the function would change.

        Raises SyntaxError or ValueError.
        """
        module = self._source.code()
        flags = sum(flag for flag in _FEATURES if module.co_flags & flag)
        changed = descend(compile_quietly(tree, self._source.path, flags), [*self._names, self._name])
        return None if changed is None else _with_function(module, self._names, changed)


def _with_function(code, names, function):
    """A code object with a function in place of the one that begins on the same line, in classes of these names; None
    where there is no such function, or it has other variables of functions around it.
    """
    for former in code.co_consts:
        if not isinstance(former, types.CodeType) or former.co_name != (names[0] if names else function.co_name):
            continue
        if names:
            later = _with_function(former, names[1:], function)
        else:
            is_same = (former.co_firstlineno, former.co_freevars) == (function.co_firstlineno, function.co_freevars)
            later = function if is_same else None
        if later is not None:
            return code.replace(co_consts=tuple(later if each is former else each for each in code.co_consts))
    return None


def parse(text, path):
    """The syntax tree, without warnings. Raises SyntaxError or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, path)


def compile_quietly(source, path, flags=0):
    """The code of a text or tree, without warnings. Raises SyntaxError or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(source, path, "exec", flags, True)


def first_line(node):
    """The first line of a statement, with its decorators."""
    return min(each.lineno for each in [node, *getattr(node, "decorator_list", ())])


def is_in_body(function, line):
    """Whether a line is one of a function's body, and of nothing else of it."""
    return last_line(function) >= line >= first_line(function.body[0]) > _header_line(function)


def _header_line(function):
    """The last line of what a `def` consists of besides its body, as far as that is known."""
    parts = [function, *ast.walk(function.args), *ast.walk(function.returns or function.args)]
    return max(getattr(part, "lineno", 0) for part in parts)


def load_from(code_for):
    """Has source files that are imported from now on loaded from other code.

    Args:
        code_for: takes the loader and the path, returns the code, or None for what the loader itself makes of it.
    """
    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code

    def get_other(self, fullname):
        code = code_for(self, self.get_filename(fullname))
        return get_code(self, fullname) if code is None else code

    loader.get_code = get_other
