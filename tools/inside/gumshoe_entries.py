"""Has functions that hold certain lines say that they are entered. Standard library only, Python 3.6 to 3.14.

A trace function slows down all of a program, so tracing had better begin when there is something to stop at. A module
is compiled here with a call at the beginning of each such function, on the line of its first statement, so that it has
the lines that it would have without.
"""

import ast
import builtins
import importlib.machinery
import sys
import warnings

ENTERED = "__gumshoe_entered__"
_current_frame = vars(sys)["_getframe"]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def announce(lines_in, on_entry):
    """Has modules that are imported from now on call `on_entry` where a function with a wanted line is entered.

    Args:
        lines_in: takes a file name, returns the wanted lines in it.
        on_entry: takes the frame of the function; is not called in threads that are traced.

    Returns a list, to which the code of each such module is added. One with a wanted line outside of its functions, or
    that a traced thread imports, is none of them; it is loaded as ever.
    """
    announced = []

    def entered():
        if sys.gettrace() is None:
            on_entry(_current_frame(1))

    setattr(builtins, ENTERED, entered)
    loader = importlib.machinery.SourceFileLoader
    get_code = loader.get_code

    def get_announced(self, fullname):
        path = self.get_filename(fullname)
        lines = lines_in(path) if sys.gettrace() is None else ()
        code = compile_announced(self.get_data(path), path, lines) if lines else None
        if code is None:
            return get_code(self, fullname)
        announced.append(code)
        return code

    loader.get_code = get_announced
    return announced


def compile_announced(data, path, lines):
    """The code of a module whose functions with one of the lines announce themselves.

    None where a line is not in the body of a function, or compiling the file has other effects, such as a warning.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            tree = ast.parse(data, path)
            functions = {id(each): each for each in (_function_at(tree, line) for line in lines)}
            if None in functions.values():
                return None
            for function in functions.values():
                _announce(function)
            code = compile(tree, path, "exec", 0, True)
        except (SyntaxError, ValueError, RecursionError):
            return None
    return None if caught else code


def _function_at(tree, line):
    """The innermost function with a line in its body, below the line of its `def`; None where it is in none."""
    found = None
    left = [tree]
    while left:
        node = left.pop()
        left.extend(ast.iter_child_nodes(node))
        if not isinstance(node, _FUNCTIONS) or not _first_line(node.body[0]) <= line <= _last_line(node):
            continue
        if _first_line(node.body[0]) > _header_line(node) and (found is None or found.lineno < node.lineno):
            found = node
    return found


def _first_line(statement):
    return min(each.lineno for each in [statement, *getattr(statement, "decorator_list", ())])


def _header_line(function):
    """The last line of what a `def` consists of besides its body, as far as that is known."""
    parts = [function, *function.decorator_list, *ast.walk(function.args), *ast.walk(function.returns or function.args)]
    return max(getattr(part, "lineno", 0) for part in parts)


def _last_line(node):
    """The last line of a statement; before Python 3.8, that where its last part begins."""
    return getattr(node, "end_lineno", None) or max(getattr(each, "lineno", 0) for each in ast.walk(node))


def _announce(function):
    """Puts the call before the first statement that is one for the interpreter, on its line."""
    body = function.body
    index = next((index for index, each in enumerate(body) if _does_something(each)), len(body))
    line = _first_line(body[min(index, len(body) - 1)])
    statement = ast.Expr(value=ast.Call(func=ast.Name(id=ENTERED, ctx=ast.Load()), args=[], keywords=[]))
    for node in ast.walk(statement):
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = body[0].col_offset
    body.insert(index, statement)


def _does_something(statement):
    if isinstance(statement, ast.Expr):
        return type(statement.value).__name__ not in ("Constant", "Str")
    return not isinstance(statement, (ast.Global, ast.Nonlocal))
