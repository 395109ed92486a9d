"""Two variants of the tests, in which each chosen test passes in one and fails in the other.

Test functions and scripts are rewritten in a sandbox, by `env/inside/verdict`, before the patch is there. A doctest
stands in the code under repair, which comes with the patch: it gets an example at its end, afterwards.
"""

from __future__ import annotations

import ast
import random
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import Base64Bytes, BaseModel

from gumshoe.env.tasks.projects import is_doctest
from gumshoe.tools.code.source import split_lines


class TestDefinition(BaseModel):
    """A function that defines tests, or a script, as the two variants have it.

    Attributes:
        path: its file.
        false_in: the variant in which its tests must fail.
        comparisons: the comparisons in it that were changed, by their number.
        fails_at: first and last line of the places where it must fail.
        asks_at: the same for the comparisons with another value, which must be unequal.
    """

    path: str
    false_in: int
    comparisons: tuple[int, ...]
    fails_at: tuple[tuple[int, int], ...]
    asks_at: tuple[tuple[int, int], ...]


class Variants(BaseModel):
    """Two variants of the test files, and with `add_examples`, also of the code that holds doctests.

    Attributes:
        contents: those of the files of each variant, by path.
        tests: which definitions each test has; none for a test that is the same in both variants.
        definitions: what is known of each definition.
        strict: tests that nothing expects to fail, so that an expected failure is none.
        doctests: those that are varied once the patch is there, each with the variant in which it must fail.
    """

    contents: tuple[dict[str, Base64Bytes], dict[str, Base64Bytes]]
    tests: dict[str, tuple[str, ...]]
    definitions: dict[str, TestDefinition]
    strict: frozenset[str]
    doctests: dict[str, int] = {}


@dataclass(frozen=True)
class Choice:
    """Which tests are to fail in one of two variants, and how.

    Attributes:
        tests: those to vary if nothing is proven.
        proven: the definitions to vary, each with the comparisons in it that are known to fail.
        draw: whether chance decides what fails where; otherwise all hold in the first variant and fail at their end in
            the second one.
        everything: whether comparisons that are not proven are changed, too.
    """

    tests: Sequence[str]
    proven: Mapping[str, Sequence[int]] | None
    draw: bool = True
    everything: bool = False


def draw_doctests(variants: Variants, choice: Choice) -> Variants:
    """The variants, in which it is settled where each wanted doctest must fail: by chance, or in the second one."""
    chance = random.SystemRandom()
    wanted = choice.tests if choice.proven is None else choice.proven
    found = [test for test, names in variants.tests.items() if not names and test in wanted and _is_doctest(test)]
    return variants.model_copy(update={"doctests": {test: chance.randrange(2) if choice.draw else 1 for test in found}})


def add_examples(variants: Variants, read: Callable[[str], bytes], parse: Callable[[bytes], ast.Module]) -> Variants:
    """The variants with an example at the end of each drawn doctest for which there is a place.

    Args:
        variants: those of the test files.
        read: the content of a file as the patch leaves it. Raises OSError.
        parse: the syntax tree of a file. Raises ValueError: it cannot be parsed.
    """
    files = (dict(variants.contents[0]), dict(variants.contents[1]))
    tests, definitions = dict(variants.tests), dict(variants.definitions)
    for test, false_in in variants.doctests.items():
        path = test.partition("::")[0]
        try:
            before = [contents.get(path) or read(path) for contents in files]
        except OSError:
            continue
        examples = _examples(false_in)
        after = [_with_example(data, test, text, parse) for data, text in zip(before, examples, strict=True)]
        if after[0] is not None and after[1] is not None:
            files[0][path], files[1][path] = after[0], after[1]
            tests[test] = (test,)
            definitions[test] = TestDefinition(path=path, false_in=false_in, comparisons=(), fails_at=(), asks_at=())
    return variants.model_copy(update={"contents": files, "tests": tests, "definitions": definitions})


def _is_doctest(test: str) -> bool:
    path, _, name = test.partition("::")
    return is_doctest(test) or (name == path.rpartition("/")[2] and not path.endswith(".py"))


def _examples(false_in: int) -> list[tuple[str, str]]:
    """The two lines of an example for each variant."""
    chance = random.SystemRandom()
    right, wrong = chance.sample(range(3, 9), 2)
    word = "".join(chance.choices(string.ascii_lowercase, k=right))
    return [(f">>> len('{word}')", str(wrong if number == false_in else right)) for number in (0, 1)]


def _with_example(
    source: bytes, test: str, example: tuple[str, str], parse: Callable[[bytes], ast.Module]
) -> bytes | None:
    """A file with one more example at the end of a doctest; None if there is no place for it."""
    path, _, name = test.partition("::")
    if not path.endswith(".py"):
        return source.rstrip() + "\n\n{}\n{}\n".format(*example).encode()
    try:
        lines = split_lines(source.decode("utf-8"))
        docstring = _docstring(parse(source), path, name)
    except ValueError:
        return None
    if docstring is None or docstring.end_lineno is None or docstring.end_col_offset is None:
        return None
    line = lines[docstring.end_lineno - 1].encode()
    end = docstring.end_col_offset - 3
    if line[end : docstring.end_col_offset] not in (b'"""', b"'''"):
        return None
    indent = "\n" + " " * docstring.col_offset
    text = f"\n{indent}{example[0]}{indent}{example[1]}{indent}".encode()
    lines[docstring.end_lineno - 1] = (line[:end] + text + line[end:]).decode()
    return "".join(lines).encode()


def _docstring(tree: ast.Module, path: str, name: str) -> ast.expr | None:
    """The expression that is the docstring of an object, by the name that pytest gives its doctest."""
    module = path.removesuffix(".py").removesuffix("/__init__").split("/")
    words = name.split(".")
    start = next(start for start in range(len(module)) if words[: len(module) - start] == module[start:])
    node: ast.AST | None = tree
    for word in words[len(module) - start :]:
        inner = [each for each in getattr(node, "body", ()) if getattr(each, "name", None) == word]
        node = inner[-1] if inner else None
    match getattr(node, "body", None):
        case [ast.Expr(value=ast.Constant(value=str()) as text), *_]:
            return text
        case _:
            return None
