"""The gate on a patch: what it adds that no run of the tests can vouch for, found in the source alone.

A verdict runs the tests in two variants (see `verifier`). Code that looks at frames, traces, reaches into memory, makes
code objects, changes imports or other modules, runs text as code, uses the test runner or reads the tests can find out
which of them it is in. A repair hardly ever begins to. A patch that does, in a file and a package that did not, is not
refused: it is unverifiable, and these lines say why.

    causes = unverifiable_lines(changed, paths, read)
    # ("shop/cart.py:3: import gc — memory: gc",)

Nothing is executed. Documentation, data and stubs are not read: no interpreter runs them. Not found are code that calls
what its package uses already, and names that are computed at run time, unless it is on a module.
"""

from __future__ import annotations

import ast
import re
import sys
import tokenize
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from io import BytesIO

from gumshoe.env.inside.programs.project import is_test_file
from gumshoe.env.verifier.gate_uses import Use, uses_in_native_code, uses_in_tree, uses_in_words
from gumshoe.env.verifier.rules import Sides
from gumshoe.env.verifier.trees import parse_python

PYTHON = (".py", ".pyw")
CYTHON = (".pyx", ".pxd", ".pxi")
NATIVE_CODE = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs")
LOADED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl", ".zip", ".pyz", "entry_points.txt")
MAGIC = (b"\x7fELF", b"PK\x03\x04", b"MZ\x90", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
SETTINGS = ("pyproject.toml", "setup.cfg")
SHEBANG = re.compile(rb"#![^\n]*python")
NOT_PARSED = "Python that cannot be parsed"
MAX_CODE = 160


def unverifiable_lines(
    changed: Mapping[str, Sides],
    paths: Collection[str],
    read: Callable[[str], bytes],
    parse: Callable[[bytes], ast.Module] = parse_python,
) -> tuple[str, ...]:
    """The lines that make a patch unverifiable, as `path:line: code — what`, by path and line; none for most patches.

    Args:
        changed: the files that the patch changes and that stay changed in the verdict (no test or configuration that is
            put back), by their path from the repository's root: their content before and after, None for no file.
        paths: every file of the repository.
        read: the content of a file that the patch does not change. It is called only for the packages of files that
            begin to use something; an OSError counts as an empty file.
        parse: the syntax tree of a file. Raises ValueError: it cannot be parsed.
    """
    repository = _Repository(changed, {*paths, *changed}, read, parse)
    lines: list[str] = []
    for path, (before, after) in sorted(changed.items()):
        if after is not None and before != after:
            lines += _lines(path, after, repository.new_uses(path, before, after))
    return tuple(lines)


class _Repository:
    """The repository before the patch."""

    def __init__(
        self,
        changed: Mapping[str, Sides],
        paths: Collection[str],
        read: Callable[[str], bytes],
        parse: Callable[[bytes], ast.Module],
    ) -> None:
        self._changed, self._paths, self._read, self._parse = changed, paths, read, parse
        own = [path for path in paths if path.endswith(PYTHON) and changed.get(path, (b"",))[0] is not None]
        self._own = {part.partition(".")[0] for path in own for part in path.split("/")} - sys.stdlib_module_names

    def new_uses(self, path: str, before: bytes | None, after: bytes) -> list[Use]:
        """What a file uses after the patch, and neither it nor its package used before."""
        if path.endswith(LOADED) or after.startswith(MAGIC):
            return [Use(1, path, "loaded without its source")]
        uses, known = self._uses(path, after), {use.name for use in self._uses(path, before or b"")}
        new = {use.name for use in uses} - known
        new -= self._used_before(path, new) if new else set()
        return sorted(use for use in uses if use.name in new)

    def _uses(self, path: str, source: bytes) -> set[Use]:
        if path.endswith(PYTHON) or SHEBANG.match(source):
            try:
                return uses_in_tree(self._parse(source), self._own)
            except ValueError:
                return {Use(1, NOT_PARSED, "not read"), *uses_in_words(_decoded(source))}
        if path.endswith(CYTHON + NATIVE_CODE):
            text = _decoded(source)
            return uses_in_words(text) | uses_in_native_code(text)
        if path.endswith(SETTINGS):
            return {use for use in uses_in_words(_decoded(source)) if use.name == "pytest11"}
        return set()

    def _used_before(self, path: str, wanted: set[str]) -> set[str]:
        """Those of the wanted names that the original files of the package used, or files that the patch removes."""
        used: set[str] = set()
        removed = (other for other, (_, after) in self._changed.items() if after is None and not is_test_file(other))
        for other in dict.fromkeys((*self._package(path), *removed)):
            if wanted <= used:
                break
            source = self._original(other)
            if NOT_PARSED in wanted or any(_word(name) in source for name in wanted - used):
                used |= {use.name for use in self._uses(other, source)}
        return used

    def _original(self, path: str) -> bytes:
        try:
            return (self._changed[path][0] or b"") if path in self._changed else self._read(path)
        except OSError:
            return b""

    def _package(self, path: str) -> Iterator[str]:
        """The files of the outermost package that a file is in, or of its folder for a single file; no tests."""
        folder = path.rpartition("/")[0]
        top = ""
        while folder and f"{folder}/__init__.py" in self._paths:
            top, folder = folder, folder.rpartition("/")[0]
        for other in sorted(self._paths):
            inside = other.startswith(f"{top}/") if top else other.rpartition("/")[0] == path.rpartition("/")[0]
            if inside and not is_test_file(other):
                yield other


def _word(name: str) -> bytes:
    """What a file holds that uses a name: its first word, of a dotted one the last part."""
    return name.split()[0].rpartition(".")[2].encode()


def _decoded(source: bytes) -> str:
    """Text as Python reads it."""
    try:
        text = source.decode(tokenize.detect_encoding(BytesIO(source).readline)[0], "replace")
    except (SyntaxError, LookupError):
        text = source.decode("latin-1")
    return unicodedata.normalize("NFKC", text)


def _lines(path: str, source: bytes, uses: list[Use]) -> Iterator[str]:
    texts = source.decode("utf-8", "replace").split("\n")
    for line in sorted({use.line for use in uses}):
        what = "; ".join(f"{use.kind}: {use.name}" for use in uses if use.line == line)
        code = "(binary)" if "\0" in texts[line - 1] else texts[line - 1].strip()[:MAX_CODE]
        yield f"{path}:{line}: {code} — {what}"
