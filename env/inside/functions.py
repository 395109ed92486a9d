"""Where functions and statements are. There are two subjects: the nodes of a syntax tree, which say what a file holds,
and code objects, which say what the interpreter runs.
"""

import ast
import dis
import types

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef)
# Flags of code objects, as in `inspect`, which takes long to import.
OPTIMIZED, VARARGS, VARKEYWORDS = 1, 4, 8

# - in a syntax tree


def first_line(node):
    """The first line of a statement, with its decorators."""
    return min(each.lineno for each in [node, *getattr(node, "decorator_list", ())])


def last_line(node):
    """The last line of a statement; before Python 3.8, the line where its last part begins."""
    end = getattr(node, "end_lineno", None)
    return end or max(getattr(each, "lineno", 0) for each in ast.walk(node))


def is_in_body(function, line):
    """Whether a line belongs to a function's body, and to no other part of the function."""
    return last_line(function) >= line >= first_line(function.body[0]) > _header_line(function)


def _header_line(function):
    """The last line of the parts of a `def` other than its body, as far as that is known."""
    parts = [function, *ast.walk(function.args), *ast.walk(function.returns or function.args)]
    return max(getattr(part, "lineno", 0) for part in parts)


def nodes_in(function):
    """The nodes of a function's body, without those of functions and classes in it."""
    left = list(function.body)
    while left:
        node = left.pop()
        if not isinstance(node, (*SCOPES, ast.Lambda)):
            yield node
            left.extend(ast.iter_child_nodes(node))


def yields(function):
    """Whether a function is a generator."""
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes_in(function))


# - in code objects


def code_objects(code):
    """A code object and all those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for inner in code_objects(constant):
                yield inner


def code_lines(code):
    """Lines at which a code object, without those inside it, gets a line event."""
    return {line for _, line in dis.findlinestarts(code) if line}


def body_line(code):
    """The first line of a function's body: where a call of it first stops."""
    lines = sorted(line for line in code_lines(code) if line > code.co_firstlineno)
    return lines[0] if lines else code.co_firstlineno


def parameters(code):
    """The names of a function's parameters."""
    variable = bool(code.co_flags & VARARGS) + bool(code.co_flags & VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + variable]


def is_function(code):
    """Whether a code object is that of a function with a name."""
    return bool(code.co_flags & OPTIMIZED) and code.co_name.isidentifier()


def descend(code, parts):
    """The code object at a path of names inside another, or None."""
    for part in parts:
        inner = [each for each in code.co_consts if isinstance(each, types.CodeType) and each.co_name == part]
        if not inner:
            return None
        code = inner[0]
    return code
