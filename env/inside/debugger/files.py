"""Which files belong to the workspace, and at which of their lines a breakpoint stops."""

import ast
import io
import linecache
import os
import re
import sys
import tokenize
import warnings

from ..functions import body_line, code_lines, code_objects, descend, is_function, last_line
from ..programs.project import FOREIGN, module_files
from .requests import CommandError

SEARCH_LIMIT = 3000
"""How many files are searched for a function."""

_open, _stat = io.open, os.stat


def _as_the_shell_says(root):
    """The shell's name for the folder, links unresolved; `root` where PWD names another folder."""
    name = os.environ.get("PWD") or root
    return name if os.path.realpath(name) == os.path.realpath(root) else root


class WorkspaceFiles:
    """The files below a folder, but for those of installed packages and our own; `root` is the folder."""

    def __init__(self, root):
        self.root = root
        self.roots = sorted({root, os.path.realpath(root), _as_the_shell_says(root)}, key=len, reverse=True)
        self.own = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
        self._names = {}
        self._lines = {}
        self._codes = {}
        self._stops = {}

    def name(self, filename):
        """The path relative to the workspace; None for a file outside it or in an installed package."""
        try:
            return self._names[filename]
        except KeyError:
            name = self._names[filename] = self._find_name(filename)
            return name

    def _find_name(self, filename):
        if filename.startswith("<"):
            return None
        full = os.path.normpath(os.path.join(self.root, filename))
        if os.path.realpath(full).startswith(self.own + os.sep):
            return None
        for root in self.roots:
            if full.startswith(root.rstrip(os.sep) + os.sep):
                name = full[len(root.rstrip(os.sep)) + 1 :]
                return None if any(part in FOREIGN for part in name.split(os.sep)[:-1]) else name
        return None

    def shown(self, filename):
        """The name to show for a file: relative if it is in the workspace, otherwise unchanged."""
        return self.name(filename) or filename

    def source(self, filename):
        """The lines of a file, without line endings; none if it cannot be read."""
        if filename not in self._lines:
            self._lines[filename] = self._read_lines(filename)
        return self._lines[filename]

    def _read_lines(self, filename):
        try:
            with _open(os.path.join(self.root, filename), "rb") as stream:
                encoding, _ = tokenize.detect_encoding(stream.readline)
                stream.seek(0)
                lines = re.split(
                    "\r\n|\r|\n", stream.read().decode(encoding, "replace")
                )  # Others end no line of Python.
                return lines if lines[-1] else lines[:-1]
        except (OSError, SyntaxError, LookupError):
            return _cached_lines(filename)

    def line(self, filename, number):
        """One line, stripped."""
        lines = self.source(filename)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def compiled(self, name):
        """The code object of a workspace file, recompiled after the file changes. Raises CommandError."""
        path = os.path.join(self.root, name)
        stamp = stamp_of(path)
        known, code = self._codes.get(path, (None, None))
        if stamp is None or stamp != known:
            code = _compiled(path, name)
            self._codes[path] = stamp, code
        return code

    def stop_line(self, name, line):
        """The line at which a breakpoint set at `line` stops: the start of the statement continued there, or the next
        one. A breakpoint on a `def` or its decorators means the function's first line. Raises CommandError.
        """
        code = self.compiled(name)
        known, stop = self._stops.get((name, line), (None, None))
        if known is not code:
            stop = _stop_line(code, name, self.source(os.path.join(self.root, name)), line)
            self._stops[name, line] = code, stop
        return stop

    def resolve(self, path):
        """The workspace's name for a file given by an agent. Raises CommandError."""
        full = os.path.normpath(os.path.join(self.root, path))
        for candidate in (full, full + ".py"):
            if os.path.isfile(candidate):
                if self.name(candidate) is None:
                    raise CommandError("{} is not part of the workspace".format(path))
                return self.name(candidate)
        raise CommandError("no file {}".format(path))

    def defining(self, function):
        """Workspace files that define a function, or method, of that name. At most SEARCH_LIMIT files are read."""
        definition = re.compile(r"^\s*(async\s+)?def\s+{}\b".format(re.escape(function)))
        return [name for name in self._python_files() if any(map(definition.match, self.source(name)))]

    def _python_files(self):
        found = []
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(each for each in folders if each not in FOREIGN and not each.startswith("."))
            found += [
                os.path.relpath(os.path.join(folder, each), self.root) for each in sorted(files) if each.endswith(".py")
            ]
            if len(found) > SEARCH_LIMIT:
                break
        return found[:SEARCH_LIMIT]


def _compiled(path, name):
    try:
        with _open(path, "rb") as stream:
            data = stream.read()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compile(data, path, "exec", 0, True)
    except OSError:
        raise CommandError("no file {}".format(name)) from None
    except (SyntaxError, ValueError) as error:
        raise CommandError("{} cannot be compiled: {}".format(name, error)) from None


class LoadedSources:
    """The files of the loaded workspace modules, as they were when the host was last answered."""

    def __init__(self, files):
        self._files = files
        self.forget()

    def forget(self):
        """The program goes on or has stopped anew: they are to be noted again."""
        self._modules, self._stamps = 0, {}

    def note(self):
        """Notes how they are, unless that is known and nothing was imported since."""
        if self._modules != len(sys.modules):
            self._modules = len(sys.modules)
            self._stamps = {path: stamp_of(path) for path in module_files().values() if self._files.name(path)}

    def changed(self):
        """Those that have changed since, as the workspace names them."""
        return sorted(self._files.shown(path) for path, stamp in self._stamps.items() if stamp_of(path) != stamp)


def stamp_of(path):
    """A stamp that changes when the file is written; None if there is no such file."""
    try:
        status = _stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _cached_lines(filename):
    """Lines of what is not a plain file, such as a module in an archive, unless the program has broken that."""
    try:
        return [line.rstrip("\n") for line in linecache.getlines(filename)]
    except Exception:  # the program may have replaced what is needed to read files
        return []


def _stop_line(top, name, lines, line):
    """As `WorkspaceFiles.stop_line`, for a file with this code and these lines."""
    if not 1 <= line <= len(lines):
        raise CommandError("{} has only {} lines".format(name, len(lines)))
    known = {found for code in code_objects(top) for found in code_lines(code)}
    if line not in known:
        line = _statement_line(lines, line, known) or line
    later = [found for found in known if found >= line]
    for wanted in [line] + ([min(later)] if later else []):
        for code in code_objects(top):
            if is_function(code) and code.co_firstlineno <= wanted <= _def_line(lines, code.co_firstlineno):
                return body_line(code)
    if not later:
        raise CommandError("no code at or after {}:{}".format(name, line))
    return min(later)


def _statement_line(lines, line, known):
    """The first of the `known` lines of a simple statement that begins above a line and continues there; else None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno < line <= last_line(node):
            return min([each for each in known if node.lineno <= each <= last_line(node)] or [node.lineno])
    return None


def _def_line(lines, line):
    """The line of the `def` of a function that starts at `line` (at its decorators)."""
    for number in range(line, len(lines) + 1):
        if re.match(r"\s*(async\s+def|def)\b", lines[number - 1]):
            return number
    return line


def function_line(files, name, function):
    """The first body line of `function` (`f`, `Class.method`) in a file. Raises CommandError."""
    for code in code_objects(files.compiled(name)):
        found = descend(code, function.split("."))
        if found is not None and is_function(found):
            return body_line(found)
    raise CommandError("no function {} in {}".format(function, name))
