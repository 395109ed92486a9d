"""Changes functions of loaded modules in place, so that a variant of a project need not be imported again.

What is inside functions can be changed this way. If a change reaches other code that ran while its module was imported
(a decorator, a default, a class attribute), or what others may have seen of a function when it was made (its
parameters, its docstring, whether it is a generator), there is no patch, and the variant has to be imported.
"""

import gc
import os
import types

from ..functions import parameters
from ..programs.project import module_files, real_project_path

CODE_OF = {
    types.FunctionType: "__code__",
    types.GeneratorType: "gi_code",
    types.CoroutineType: "cr_code",
    types.AsyncGeneratorType: "ag_code",
}
SIGNATURE = ("co_name", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount", "co_flags", "co_freevars")


class NoPatch(Exception):
    """The change cannot be made in place."""


class Functions:
    """The functions of a project that exist now, and suspended generators, by the code that they run.

    Make it before `gc.freeze`, which hides them. A patch is a list of functions, each with its new code, for `apply`.

    Args:
        root: the folder of the project.
    """

    def __init__(self, root):
        self._root = root = os.path.realpath(root)
        self._by_code = {}  # {(path, code): [function or generator]}
        self._file_names = {}  # {path: the file name in its code}
        paths = {}
        # A thread that is building a tuple fails if it goes on while this list of all objects, and so of that tuple, is
        # there. Hence nothing is read from the disk in the meantime, which would let it.
        found = [item for item in gc.get_objects() if type(item) in CODE_OF]
        for item in found:
            code = getattr(item, CODE_OF[type(item)])
            if code.co_filename not in paths:
                paths[code.co_filename] = real_project_path(code.co_filename, root)
            path = paths[code.co_filename]
            if path is not None:
                self._file_names[path] = code.co_filename
                self._by_code.setdefault((path, code), []).append(item)

    def replacement(self, file, old, new):
        """What gives the loaded functions of a file their new code; None if there is no such function, or if other code
        differs, too.

        Args:
            file: the file's name.
            old, new: the code of the module before and after; None before if that is not known.
        """
        path, patch = real_project_path(file, self._root), []
        try:
            if path is not None and old is not None:
                self._compare(path, old, new, patch)
        except NoPatch:
            return None
        return patch or None

    def _compare(self, path, old, new, patch):
        """Adds what turns the code `old` into `new`. Raises NoPatch."""
        if old == new:
            return
        functions = self._by_code.get((path, old))
        if functions is None:
            # Code that has run, such as a module's or a class's: it may differ only in the functions that it made.
            if _code_signature(old) != _code_signature(new):
                raise NoPatch
        elif _public_signature(old) != _public_signature(new) or any(
            type(each) is not types.FunctionType for each in functions
        ):
            raise NoPatch  # a generator that is halfway through goes on as it was
        else:
            patch.extend((function, new) for function in functions)
        before, after = _nested(old), _nested(new)
        if len(before) == len(after):
            for pair in zip(before, after):
                # In a function that is replaced, only what already exists as a function matters.
                if functions is None or self._is_alive(path, pair[0]):
                    self._compare(path, pair[0], pair[1], patch)
        elif any(self._is_alive(path, code) for code in before):
            raise NoPatch

    def _is_alive(self, path, code):
        """Whether a function exists that runs this code or some code in it."""
        return (path, code) in self._by_code or any(self._is_alive(path, each) for each in _nested(code))


class FunctionsOfFiles(Functions):
    """The same, for changes that are given as the texts of whole files.

    Args:
        root: the folder of the project.
        clean: the folder with the project as it was loaded.
    """

    def __init__(self, root, clean):
        super().__init__(root)
        self._clean = clean
        self._loaded = loaded_files(self._root) | set(self._file_names)
        self._codes = {}  # {path: the code of the module as it was loaded}

    def patch(self, files):
        """What turns the loaded project into one with `files`, {path: text}; None if nothing does.

        A file that is not loaded needs no patch: whoever imports it reads it then.
        """
        patch = []
        try:
            for path, text in files.items():
                if path in self._loaded:
                    self._compare(path, self._clean_code(path), self._compile(path, text), patch)
        except (NoPatch, SyntaxError, ValueError, OSError):
            return None
        return patch

    def _clean_code(self, path):
        if path not in self._codes:
            with open(os.path.join(self._clean, path), encoding="utf-8", newline="") as file:
                self._codes[path] = self._compile(path, file.read())
        return self._codes[path]

    def _compile(self, path, text):
        return compile(text, self._file_names.get(path, path), "exec", 0, True)


def apply(patch):
    """Gives functions their new code."""
    for function, code in patch:
        function.__code__ = code


def loaded_files(root):
    """The project's own files that are imported."""
    paths = {real_project_path(path, root) for path in module_files().values()}
    return paths - {None}


def _nested(code):
    """The code objects directly inside a code object."""
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def _code_signature(code):
    """What a piece of code does, apart from its line numbers and from what is inside the code that it holds."""
    consts = [
        const.co_name if isinstance(const, types.CodeType) else (type(const), repr(const)) for const in code.co_consts
    ]
    names = code.co_names, code.co_varnames, code.co_cellvars
    return _public_signature(code), code.co_code, names, consts, getattr(code, "co_exceptiontable", None)


def _public_signature(code):
    """What others may have seen of a function when it was made."""
    facts = [getattr(code, name, None) for name in SIGNATURE]
    docstring = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else None
    return facts, parameters(code), docstring
