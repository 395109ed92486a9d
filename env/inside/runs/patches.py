"""Changes functions of loaded modules in place, so that a variant of a project need not be imported again.

What is inside functions can be changed this way, and so can their defaults. Where a change reaches other code that ran
while its module was imported (a decorator, a class attribute), or a function's own face (its parameters, its docstring,
whether it is a generator), there is no patch, and the variant has to be imported.

Standard library only, Python 3.6 and later.
"""

import ast
import gc
import os
import sys
import types

from ..programs.project import real_project_path

CODE_OF = {
    types.FunctionType: "__code__",
    types.GeneratorType: "gi_code",
    types.CoroutineType: "cr_code",
    types.AsyncGeneratorType: "ag_code",
}
FACE = ("co_name", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags", "co_freevars")
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class NoPatch(Exception):
    """The change cannot be made in place."""


class Patch:
    """How a variant is made from the loaded project.

    Attributes:
        codes: [(function, its new code)].
        defaults: [(function, lambda with its new defaults, what these are evaluated in)].
        headers: [(path, lines of a definition whose defaults change, lines of its body)].
    """

    def __init__(self):
        self.codes = []
        self.defaults = []
        self.headers = []

    def apply(self):
        """Makes the changes. Raises what the evaluation of a default raises."""
        values = [eval(code, function.__globals__, names) for function, code, names in self.defaults]
        for (function, _, _), made in zip(self.defaults, values):
            function.__defaults__, function.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        for function, code in self.codes:
            function.__code__ = code


class Functions:
    """The functions of a project that exist now, and suspended generators, by the code that they run. Make it before
    `gc.freeze`. `clean` is the folder with the project as it was loaded, which only `patch` needs.
    """

    def __init__(self, root, clean=None):
        self.root = root = os.path.realpath(root)
        self.clean = clean
        self.found = {}
        self.files = {}
        self.sources = {}
        names = {}
        for item in gc.get_objects():
            if type(item) not in CODE_OF:
                continue
            code = getattr(item, CODE_OF[type(item)])
            if code.co_filename not in names:
                names[code.co_filename] = real_project_path(code.co_filename, root)
            path = names[code.co_filename]
            if path is not None:
                self.files[path] = code.co_filename
                self.found.setdefault((path, code), []).append(item)
        self.loaded = loaded_files(root) | set(self.files)

    def patch(self, files):
        """What turns the loaded project into one with `files`, {path: text}; None where nothing does.
        A file that is not loaded needs no patch: whoever imports it reads it then.
        """
        made = Patch()
        try:
            for path, text in files.items():
                if path in self.loaded:
                    old, new = self.source_of(path), self.read(path, text)
                    self.compare(path, old.code, new.code, made)
                    self.compare_defaults(path, old, new, made)
        except (NoPatch, SyntaxError, ValueError, OSError):
            return None
        return made

    def replacement(self, file, old, new):
        """What gives the loaded functions of a file their new code, where `old` and `new` are the module's; None if
        there is no such function, or the code differs elsewhere.
        """
        path, made = real_project_path(file, self.root), Patch()
        try:
            if path is not None and old is not None:
                self.compare(path, old, new, made)
        except NoPatch:
            return None
        return made if made.codes else None

    def source_of(self, path):
        """The clean source of a file, split into its functions. Read once."""
        if path not in self.sources:
            assert self.clean is not None
            with open(os.path.join(self.clean, path), encoding="utf-8", newline="") as file:
                self.sources[path] = self.read(path, file.read())
        return self.sources[path]

    def read(self, path, text):
        """A source text, split into its functions."""
        return SplitSource(text, self.files.get(path, path))

    def compare(self, path, old, new, made):
        """Collects what turns the code `old` into `new`. Raises NoPatch."""
        if old == new:
            return
        functions = self.found.get((path, old))
        if functions is None:
            # Code that has run, such as a module's or a class's: it may differ only in the functions that it made.
            if shell(old) != shell(new):
                raise NoPatch
        elif face(old) != face(new) or any(type(one) is not types.FunctionType for one in functions):
            raise NoPatch  # a generator that is halfway through goes on as it was
        else:
            made.codes.extend((function, new) for function in functions)
        before, after = nested(old), nested(new)
        if len(before) == len(after):
            for pair in zip(before, after):
                # In a function that is replaced, only what already exists as a function matters.
                if functions is None or self.alive(path, pair[0]):
                    self.compare(path, pair[0], pair[1], made)
        elif any(self.alive(path, code) for code in before):
            raise NoPatch

    def compare_defaults(self, path, old, new, made):
        """Collects the defaults that differ. Raises NoPatch."""
        if len(old.definitions) != len(new.definitions):
            raise NoPatch
        for before, after in zip(old.definitions, new.definitions):
            if before.defaults == after.defaults:
                continue
            code = old.code_of(before)
            functions = self.found.get((path, code), []) if code is not None else []
            if not functions:
                raise NoPatch
            made.headers.append((path, before.header, before.body))
            for function in functions:
                made.defaults.append((function, after.evaluator(self.files.get(path, path)), class_of(function)))

    def alive(self, path, code):
        """Whether a function exists that runs this code or some code in it."""
        return (path, code) in self.found or any(self.alive(path, one) for one in nested(code))


class SplitSource:
    """A file: its code without the defaults of the functions that modules and classes define, and these functions."""

    def __init__(self, text, filename):
        tree = ast.parse(text, filename)
        self.definitions = [Definition(node) for node in definitions(tree)]
        for one in self.definitions:
            one.leave_out_defaults()
        self.code = compile(tree, filename, "exec", 0, True)

    def code_of(self, definition):
        """The code of one of the functions, None where it cannot be told."""
        wanted = (definition.name, definition.first)
        found = [code for code in all_code(self.code) if (code.co_name, code.co_firstlineno) == wanted]
        return found[0] if len(found) == 1 else None


class Definition:
    """A function that a module or a class defines: where, and with which defaults."""

    def __init__(self, node):
        self.name = node.name
        self.arguments = node.args
        self.first = min([node.lineno] + [one.lineno for one in node.decorator_list])
        self.given, self.by_name = list(node.args.defaults), list(node.args.kw_defaults)
        self.defaults = [ast.dump(one) for one in self.given + [one for one in self.by_name if one is not None]]
        start = node.body[0].lineno
        self.header = range(self.first, max(start, node.lineno + 1))
        self.body = sorted({one.lineno for part in node.body for one in ast.walk(part) if isinstance(one, ast.stmt)})

    def leave_out_defaults(self):
        """Puts None in place of each default."""
        nothing = [ast.copy_location(ast.parse("None", mode="eval").body, one) for one in self.given]
        self.arguments.defaults = nothing
        self.arguments.kw_defaults = [
            one and ast.copy_location(ast.parse("None", mode="eval").body, one) for one in self.by_name
        ]

    def evaluator(self, filename):
        """Code of a lambda that has these defaults."""
        self.arguments.defaults, self.arguments.kw_defaults = self.given, self.by_name
        for node in ast.walk(self.arguments):
            if isinstance(node, ast.arg):
                node.annotation = None
        body = ast.Lambda(args=self.arguments, body=ast.parse("None", mode="eval").body)
        return compile(ast.fix_missing_locations(ast.Expression(body=body)), filename, "eval", 0, True)


def definitions(node):
    """The functions that are defined when this is executed, not when one of them is called."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, DEFINITIONS):
            yield child
        elif not isinstance(child, ast.Lambda):
            for one in definitions(child):
                yield one


def class_of(function):
    """The names in the class that a function was defined in; none for one of a module."""
    found = dict(function.__globals__)
    for name in function.__qualname__.split(".")[:-1]:
        found = dict(vars(found[name])) if isinstance(found.get(name), type) else {}
    return found if "." in function.__qualname__ else {}


def loaded_files(root):
    """The project's own files that are imported."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    paths = [real_project_path(path, root) for path in files if isinstance(path, str)]
    return {path for path in paths if path is not None}


def nested(code):
    """The code objects directly inside a code object."""
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def all_code(code):
    """All code in a piece of code."""
    for one in nested(code):
        yield one
        for inner in all_code(one):
            yield inner


def shell(code):
    """What a piece of code does, apart from its line numbers and from what is inside the code that it holds."""
    consts = [
        const.co_name if isinstance(const, types.CodeType) else (type(const), repr(const)) for const in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_cellvars
    return face(code), code.co_code, names, consts, getattr(code, "co_exceptiontable", None)


def face(code):
    """What others may have seen of a function when it was made."""
    arguments = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    facts = [getattr(code, name, None) for name in FACE]
    return facts, code.co_varnames[:arguments], docstring(code)


def docstring(code):
    """The docstring of a code object, or None."""
    first = code.co_consts[0] if code.co_consts else None
    return first if isinstance(first, str) else None
