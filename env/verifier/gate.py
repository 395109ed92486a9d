"""The gate on a patch: what it adds that no run of the tests can vouch for, found in the source alone.

Code that looks at frames, traces, reaches into memory, makes code objects, changes imports, runs text as code, uses the
test runner or reads the tests can find out how it is being tested. A repair hardly ever begins to. A patch that does,
in a file and a package that did not, is not refused: it is unverifiable, and these lines say why.

    causes = unverifiable_lines(changed, paths, read)
    # ("shop/cart.py:3: import gc — memory: gc",)

Nothing is executed. Python is read as a syntax tree; Cython, C, Rust, and Python that this interpreter cannot parse, as
words. Documentation, data and stubs are not read: no interpreter runs them. What is not found: code that calls what
its package uses already, and names computed at run time on objects that are not known to be modules.
"""

from __future__ import annotations

import re
import sys
import tokenize
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from io import BytesIO

from gumshoe.env.verifier.gate_names import NATIVE, SENSITIVE, TEST_MODULE
from gumshoe.env.verifier.gate_tree import Found, Use, known_names, known_texts, uses_in_tree
from gumshoe.env.verifier.harness_files import Sides, is_test_file

__all__ = ["unverifiable_lines"]

PYTHON = (".py", ".pyw")
CYTHON = (".pyx", ".pxd", ".pxi")
NATIVE_CODE = (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".rs")
LOADED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".pth", ".egg", ".whl", ".zip", ".pyz", "entry_points.txt")
MAGIC = (b"\x7fELF", b"PK\x03\x04", b"MZ\x90", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
SETTINGS = ("pyproject.toml", "setup.cfg")
SHEBANG = re.compile(rb"#![^\n]*python")
DOTTED = re.compile(r"(?<![\w.])[^\W\d][\w.]+")
IMPORT = re.compile(r"\s*(?:c?import|from)\s+([\w.]+)(?:\s+c?import\s+(.*))?")
GLUE = re.compile(r"""["']\s*\+?\s*[rbuf]?["']""")
BY_COMPUTED_NAME = re.compile(rf"attr\s*\(\s*\w*\.?({'|'.join(SENSITIVE)})\s*,\s*[^'\"]|import_module\s*\(\s*[^'\"]")
RUN_AS_CODE = re.compile(r"(?<![\w.])(exec|eval|compile|globals)\s*\(")
MAX_CODE = 160


def unverifiable_lines(
    changed: Mapping[str, Sides], paths: Collection[str], read: Callable[[str], bytes]
) -> tuple[str, ...]:
    """The lines that make a patch unverifiable, as `path:line: code — what`, by path and line; none for most patches.

    Args:
        changed: the files that the patch changes and that stay changed in the verdict (no test or configuration that is
            put back), by their path from the repository's root: their content before and after, None for no file.
        paths: every file of the repository.
        read: the content of a file that the patch does not change. It is called only for the packages of files that
            begin to use something; an OSError counts as an empty file.
    """
    found = {path: _new_uses(path, sides) for path, sides in changed.items()}
    lines: list[str] = []
    for path in sorted(path for path, uses in found.items() if uses):
        before = _used_before(path, changed, paths, read, {use.name for use in found[path]})
        lines += _lines(path, changed[path][1] or b"", [use for use in found[path] if use.name not in before])
    return tuple(lines)


def _new_uses(path: str, sides: Sides) -> list[Use]:
    """What a file uses after the patch and did not use before."""
    before, after = sides
    if after is None or before == after:
        return []
    if path.endswith(LOADED) or after.startswith(MAGIC):
        return [Use(1, path, "loaded without its source")]
    try:
        uses, known = _uses(path, after), _uses(path, before or b"")
    except ValueError:
        uses, known = _uses_in_words(after), _uses_in_words(before or b"")
    names = {use.name for use in known}
    return sorted(use for use in uses if use.name not in names)


def _uses(path: str, source: bytes) -> set[Use]:
    """Raises ValueError for Python that cannot be parsed."""
    if path.endswith(PYTHON) or SHEBANG.match(source):
        own = {part.partition(".")[0] for part in path.split("/")}
        return uses_in_tree(source, own - sys.stdlib_module_names)
    if path.endswith(CYTHON + NATIVE_CODE):
        return _uses_in_words(source, native=True)
    if path.endswith(SETTINGS):
        return {use for use in _uses_in_words(source) if use.name == "pytest11"}
    return set()


def _uses_in_words(source: bytes, *, native: bool = False) -> set[Use]:
    """Coarser than `uses_in_tree`: comments and texts count, and names are not followed."""
    try:
        text = source.decode(tokenize.detect_encoding(BytesIO(source).readline)[0], "replace")
    except (SyntaxError, LookupError):
        text = source.decode("latin-1")
    lines = unicodedata.normalize("NFKC", text).split("\n")
    found = {Use(number, *found) for number, line in enumerate(lines, 1) for found in _in_line(GLUE.sub("", line))}
    if native:
        found |= {Use(at, word[0], "native code") for at, line in enumerate(lines, 1) for word in NATIVE.finditer(line)}
    return found


def _in_line(line: str) -> Found:
    yield from known_texts(line)
    for dotted in DOTTED.findall(line):
        if "." in dotted:
            yield from known_names(dotted)
    yield from ((f"builtins.{call[1]}", "text run as code") for call in RUN_AS_CODE.finditer(line))
    if BY_COMPUTED_NAME.search(line):
        yield "attribute with a computed name", "names on modules"
    if imported := IMPORT.match(line):
        members = DOTTED.findall(imported[2] or "")
        for dotted in (imported[1], *(f"{imported[1]}.{member}" for member in members)):
            yield from known_names(dotted)
            if TEST_MODULE.search(dotted):
                yield dotted, "test files"


def _used_before(
    path: str,
    changed: Mapping[str, Sides],
    paths: Collection[str],
    read: Callable[[str], bytes],
    wanted: set[str],
) -> set[str]:
    """Those of the wanted names that the original files of the package used, or files that the patch removes."""
    used: set[str] = set()
    removed = (other for other, (_, after) in changed.items() if after is None and not is_test_file(other))
    for other in dict.fromkeys((*_package(path, {*paths, *changed}), *removed)):
        if wanted <= used:
            break
        source = _original(other, changed, read)
        if not any(word in source for word in _words(wanted - used)):
            continue
        try:
            uses = _uses(other, source)
        except ValueError:
            uses = _uses_in_words(source)
        used |= {use.name for use in uses}
    return used


def _words(names: set[str]) -> set[bytes]:
    """What a file holds that uses one of the names: the last word of a dotted one."""
    return {b"" if " " in name else name.rpartition(".")[2].encode() for name in names}


def _original(path: str, changed: Mapping[str, Sides], read: Callable[[str], bytes]) -> bytes:
    try:
        return (changed[path][0] or b"") if path in changed else read(path)
    except OSError:
        return b""


def _package(path: str, paths: Collection[str]) -> Iterator[str]:
    """The files of the outermost package that a file is in, tests left out; those of its folder for a single file."""
    folder = path.rpartition("/")[0]
    top = ""
    while folder and f"{folder}/__init__.py" in paths:
        top, folder = folder, folder.rpartition("/")[0]
    for other in sorted(paths):
        inside = other.startswith(f"{top}/") if top else other.rpartition("/")[0] == path.rpartition("/")[0]
        if inside and not is_test_file(other):
            yield other


def _lines(path: str, source: bytes, uses: list[Use]) -> Iterator[str]:
    texts = source.decode("utf-8", "replace").split("\n")
    for line in sorted({use.line for use in uses}):
        what = "; ".join(f"{use.kind}: {use.name}" for use in uses if use.line == line)
        code = "(binary)" if "\0" in texts[line - 1] else texts[line - 1].strip()[:MAX_CODE]
        yield f"{path}:{line}: {code} — {what}"
