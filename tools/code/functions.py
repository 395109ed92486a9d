"""Functions and classes of Python files, by the lines they span; the one that an agent names; the one around a line,
where only some lines were seen.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gumshoe.env.inside.programs.project import FOREIGN, holds_tests
from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.text import indentation
from gumshoe.tools.code.source import read_source, split_lines

LONGEST = 2_000_000
MODULE = "<module>"
"""What lines outside any function or class belong to."""
DEFINITION = re.compile(r"(?:async\s+)?(def|class)\s+(\w+)")
_FILES = 200
_NAMED = 6


@dataclass(frozen=True)
class Span:
    """A function or class with its qualified name; both lines included, decorators too."""

    name: str
    start: int
    end: int
    is_class: bool = False


def spans(source: str) -> tuple[Span, ...] | None:
    """All functions and classes of `source`, outer before inner; None where it holds neither Python nor definitions, or
    has more than two million characters.
    """
    if len(source) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(source)
        return tuple(_below(tree, ""))
    except SyntaxError:
        return _spans_by_indentation(source)
    except (ValueError, RecursionError, MemoryError):
        return None


def _spans_by_indentation(source: str) -> tuple[Span, ...] | None:
    """As `spans`, of syntax that this Python does not know, as newer ones have it; None if it holds no definition.

    By the indentation alone: what a project holds must not reach a parser that may end this process.
    """
    found: list[Span] = []
    around: list[tuple[int, int]] = []  # The indentation and the index of each definition that is not over.
    decorators: int | None = None
    for number, line in enumerate(split_lines(source), start=1):
        text = line.strip()
        if not text or text.startswith(("#", ")", "]", "}")):
            continue
        indent = indentation(line)
        around = [outer for outer in around if outer[0] < indent]
        definition = DEFINITION.match(text)
        if definition is not None:
            outer = f"{found[around[-1][1]].name}." if around else ""
            start = number if decorators is None else decorators
            around.append((indent, len(found)))
            found.append(Span(f"{outer}{definition[2]}", start, number, definition[1] == "class"))
        for _, index in around:
            found[index] = replace(found[index], end=number)
        decorators = (decorators or number) if text.startswith("@") else None
    return tuple(found) or None


def enclosing(found: tuple[Span, ...], line: int) -> str:
    """The qualified name of the innermost function or class around `line`."""
    around = innermost(found, line)
    return MODULE if around is None else around.name


def innermost(found: Sequence[Span], line: int) -> Span | None:
    """The innermost span around `line`, of spans that come outer before inner; None where there is none."""
    return next((span for span in reversed(found) if span.start <= line <= span.end), None)


def _below(node: ast.AST, prefix: str) -> Iterator[Span]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}{child.name}"
            start = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
            yield Span(name, start, child.end_lineno or child.lineno, isinstance(child, ast.ClassDef))
            yield from _below(child, f"{name}.")
        else:
            yield from _below(child, prefix)


@dataclass(frozen=True)
class Function:
    """A function of the workspace, and the lines of its file."""

    path: str
    span: Span
    source: tuple[str, ...]

    @property
    def short_name(self) -> str:
        """Its name without that of the class or function that it is in."""
        return self.span.name.rpartition(".")[2]


def find_function(workspace: Workspace, wanted: str) -> Function:
    """The one function that `wanted` means: NAME, CLASS.NAME, MODULE.NAME, PATH:NAME or PATH:LINE (the innermost one
    there). A class means its `__init__`.

    Raises ToolFailure: there is none, there are several, or the file cannot be read.
    """
    path, _, name = wanted.strip().removesuffix("()").rpartition(":")
    if not name:
        raise ToolFailure("bad_arguments", "name a function: NAME, CLASS.NAME, PATH:NAME or PATH:LINE")
    functions = list(_functions_in_file(workspace, path, name) if path else _functions_in_workspace(workspace, name))
    functions = [function for function in functions if not holds_tests(function.path)] or functions
    if not functions:
        raise ToolFailure("no_function", f"There is no function {name} in {path or 'the workspace'}.")
    if len(functions) > 1:
        places = ", ".join(f"{found.path}:{found.span.start} ({found.span.name})" for found in functions[:_NAMED])
        more = f" and {len(functions) - _NAMED} more" if len(functions) > _NAMED else ""
        raise ToolFailure("ambiguous", f"{name} exists in several places: {places}{more}. Name one as PATH:LINE.")
    return functions[0]


def _functions_in_file(workspace: Workspace, path: str, name: str) -> Iterator[Function]:
    source = read_source(workspace.read_text(path)).shown
    known = spans("\n".join(source))
    if known is None:
        raise ToolFailure("bad_file", f"{path} cannot be parsed as Python.")
    clean = path.removeprefix("./")
    if name.isdigit():
        inside = [span for span in known if span.start <= int(name) <= span.end and not span.is_class]
        chosen = inside[-1:]
    else:
        chosen = _named(known, name)
    for span in chosen:
        yield Function(clean, span, tuple(source))


def _named(known: tuple[Span, ...], name: str) -> list[Span]:
    """The functions of that name, or whose qualified name ends so; of a class, its `__init__`."""
    matching = [span for span in known if span.name == name] or [s for s in known if s.name.endswith(f".{name}")]
    made = {f"{span.name}.__init__" for span in matching if span.is_class}
    return [span for span in known if (span in matching and not span.is_class) or span.name in made]


def _functions_in_workspace(workspace: Workspace, name: str) -> Iterator[Function]:
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", name):
        raise ToolFailure(
            "bad_arguments", f"{name!r} is not the name of a function. Name one as NAME, PATH:NAME or PATH:LINE"
        )
    parts = name.split(".")
    matches, _ = workspace.grep(rf"^\s*(async\s+def|def|class)\s+{parts[-1]}\b", limit=_FILES)
    paths = sorted({match.path for match in matches if match.path.endswith(".py") and _is_own(match.path)})
    for index in range(len(parts)):
        module, function = "/".join(parts[:index]), ".".join(parts[index:])
        found = [each for path in paths if _is_module(path, module) for each in _try_file(workspace, path, function)]
        yield from found
        if found:
            return


def _is_own(path: str) -> bool:
    return not any(part in FOREIGN for part in path.split("/")[:-1])


def _is_module(path: str, module: str) -> bool:
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return not module or stem == module or stem.endswith(f"/{module}")


def _try_file(workspace: Workspace, path: str, name: str) -> Iterator[Function]:
    try:
        yield from _functions_in_file(workspace, path, name)
    except ToolFailure:
        return


# - of lines that were seen, which may be part of a file


@dataclass(frozen=True)
class Region:
    """The function or class around a line, both ends included; `symbol` is None at module level."""

    start: int
    end: int
    symbol: str | None


def region_of(lines: Mapping[int, str], number: int) -> Region:
    """The innermost function or class around a line, by the indentation of the lines that were seen."""
    names: list[str] = []
    start = number
    top: int | None = None
    own = DEFINITION.match(lines.get(number, "").strip())
    indent = indentation(_solid(lines, number))
    if own:
        names, top = [own[2]], number
    for line in range(number - 1, 0, -1):
        if line not in lines:
            break
        start = line
        opener = DEFINITION.match(lines[line].strip())
        if opener and indentation(lines[line]) < indent:
            names.append(opener[2])
            indent = indentation(lines[line])
            top = line if top is None else top
    if top is None:
        return Region(start, _last_seen(lines, number), None)
    return Region(top, _end_of(lines, top), ".".join(reversed(names)))


def _solid(lines: Mapping[int, str], number: int) -> str:
    """The line, or the next one that is not blank."""
    while number in lines and not lines[number].strip():
        number += 1
    return lines.get(number, "")


def _end_of(lines: Mapping[int, str], top: int) -> int:
    """The last line of the block that opens at `top`, as far as it was seen; blank lines at its end left out."""
    indent = indentation(lines[top])
    end = number = top
    while number + 1 in lines:
        number += 1
        text = lines[number]
        if text.strip() and indentation(text) <= indent and not text.lstrip().startswith((")", "]", "}")):
            break
        if text.strip():
            end = number
    return end


def _last_seen(lines: Mapping[int, str], number: int) -> int:
    while number + 1 in lines:
        number += 1
    return number
