"""What Python source uses of the names that the gate looks for, read from its syntax tree."""

from __future__ import annotations

import ast
import re
import threading
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from gumshoe.env.verifier.gate_names import (
    BUILTINS,
    CALLED,
    MODULES,
    NAMES,
    SENSITIVE,
    STORED,
    TEST_MODULE,
    TEXTS,
    WORDS,
)

__all__ = ["Found", "Use", "known_names", "known_texts", "uses_in_tree"]

WORD = re.compile(r"[^\W\d]\w+")
CODE = re.compile(r"[(=]|\bimport\b")
IMPORTERS = {"builtins.__import__", "importlib.import_module"}
BY_NAME = {"attrgetter", "delattr", "getattr", "hasattr", "methodcaller", "setattr", "__getattribute__", "__setattr__"}
NAME_FIRST = {"attrgetter", "methodcaller", "__getattribute__", "__setattr__"}
SETTERS = {"delattr", "setattr", "__setattr__"}
SPELLERS = {"b64decode", "bytearray", "bytes", "chr", "decode", "fromhex", "reversed", "unhexlify"}
LONGEST = max(name.count(".") + 1 for table in (MODULES, NAMES) for name in table)
MAX_DEPTH, MAX_PARTS, MAX_NESTED, MAX_CODE = 50, 200, 2, 20_000
Found = Iterator[tuple[str, str]]
"""Names and their kinds."""


class Use(NamedTuple):
    """One use in a file: its line from 1, the name by which two uses are the same, and its kind."""

    line: int
    name: str
    kind: str


_PARSER = threading.Lock()
"""Two variants are read at a time, and CPython 3.11 counts the depth of a tree in one place for all threads."""


def uses_in_tree(source: bytes | str, own: Iterable[str], nested: int = 0) -> set[Use]:
    """The uses in Python source.

    Args:
        source: the file; bytes in the encoding that they declare.
        own: names of the packages that the file is in; to set attributes of what they hold is ordinary code.
        nested: in how many strings the source stands.

    Raises:
        ValueError: this Python cannot parse it.
    """
    try:
        with _PARSER, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        return set(_Tree(tree, frozenset(own), nested).uses())
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None


def known_names(dotted: str) -> Found:
    """What a dotted name uses: words anywhere in it, modules and longer names at its beginning."""
    parts = dotted.split(".")
    yield from ((part, WORDS[part]) for part in parts if part in WORDS)
    for end in range(1, min(len(parts), LONGEST) + 1):
        name = ".".join(parts[:end])
        yield from ((name, table[name]) for table in (MODULES, NAMES) if name in table)


def known_texts(text: str) -> Found:
    """What a string names: words, and paths that it has no business with."""
    yield from ((word, WORDS[word]) for word in WORD.findall(text) if word in WORDS)
    yield from ((found[0], kind) for kind, pattern in TEXTS.items() for found in pattern.finditer(text))


class _Tree:
    """One syntax tree. Names are followed through imports and plain assignments, wherever in the file they stand."""

    def __init__(self, tree: ast.Module, own: frozenset[str], nested: int) -> None:
        self._own, self._nested = own | {""}, nested  # A relative import begins with a dot.
        self._nodes = list(ast.walk(tree))
        self._names: dict[str, set[str]] = {}
        self._texts: dict[str, set[str]] = {}
        self._spelled: set[str] = set()
        self._bases: set[int] = set()
        self._renamed = any(_binds(node, "__name__") for node in self._nodes)
        redefined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        redefined |= {name for node in tree.body for name, _ in _imported(node)}
        self._builtins = BUILTINS - redefined
        for node in self._nodes:
            for name, dotted in _imported(node):
                self._names.setdefault(name, set()).add(dotted)
        for _ in range(3):  # A name may get its value from one that is assigned further down.
            for node in self._nodes:
                self._follow(node)

    def uses(self) -> Iterator[Use]:
        """Everything that counts."""
        passed_over, self._bases = set(self._harmless()), set(self._looked_into())
        for node in self._nodes:
            if id(node) not in passed_over:
                yield from (Use(getattr(node, "lineno", 1), *found) for found in self._found(node))

    def _follow(self, node: ast.AST) -> None:
        """Notes what a name is assigned: another name, a text, or a text that is spelled out."""
        for target, value in _assigned(node):
            self._names.setdefault(target, set()).update(self._dotted(value))
            if (text := self._text(value)) is not None:
                self._texts.setdefault(target, set()).add(text)
            elif self._is_spelled(value):
                self._spelled.add(target)

    def _harmless(self) -> Iterator[int]:
        """Nodes that do not count: docstrings, `x in sys.modules`, `sys.modules[__name__]`."""
        for node in self._nodes:
            match node:
                case ast.Expr(value=ast.Constant() as text):
                    yield id(text)
                case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[where]) if self._is_modules(where):
                    yield id(where)
                case ast.Subscript(value=base, slice=ast.Name(id="__name__")) if self._is_modules(base):
                    yield from () if self._renamed else (id(node), id(base))
                case _:
                    pass

    def _looked_into(self) -> Iterator[int]:
        """Names that are more than values: `sys.x`, `getattr(sys, "x")`, `inspect(x)`."""
        for node in self._nodes:
            match node:
                case ast.Attribute(value=base) | ast.Call(func=ast.Name() as base):
                    yield id(base)
                case _:
                    pass
            if isinstance(node, ast.Call) and _tail(node.func) in ("getattr", "hasattr") and len(node.args) > 1:
                yield from () if self._text(node.args[1]) is None else (id(node.args[0]),)

    def _found(self, node: ast.AST) -> Found:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from self._imports(node)
            case ast.Name(id=name, ctx=context):
                yield from known_names(name if name in WORDS else "")
                yield from self._named(node)
                if isinstance(context, ast.Load) and id(node) not in self._bases and self._dotted(node) & SENSITIVE:
                    yield f"{name} as a value", "names on modules"
            case ast.Attribute(value=base, attr=attribute, ctx=context):
                yield from known_names(attribute if attribute in WORDS else "")
                yield from self._named(node)
                if not isinstance(context, ast.Load):
                    yield from self._stored(base, attribute)
                elif attribute in ("__dict__", "__getattribute__") and self._is_module(base):
                    yield f"{attribute} of a module", "names on modules"
            case ast.Subscript():
                yield from self._named(node)
                yield from self._in_text(self._text(node) or "")
            case ast.Call():
                yield from self._called(node)
            case ast.Constant(value=str() | bytes()) | ast.BinOp() | ast.JoinedStr():
                yield from self._in_text(self._text(node) or "")
            case ast.MatchClass(kwd_attrs=attributes):
                yield from (found for name in attributes for found in known_names(name))
            case ast.FunctionDef(name="__eq__" | "__ne__", args=arguments, body=body):
                yield from _equality(arguments, body)
            case ast.Assign(targets=[ast.Name(id="__eq__" | "__ne__")], value=ast.Lambda(args=arguments, body=body)):
                yield from _equality(arguments, [ast.Return(body)])
            case ast.Dict(keys=keys):
                names = {self._text(key) for key in keys if key is not None}
                yield from ((name, "objects in disguise") for name in ("__eq__", "__ne__") if name in names)
            case _:
                pass

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Found:
        for name, dotted in _imported(node):
            yield from known_names(dotted)
            if TEST_MODULE.search(dotted):
                yield dotted, "test files"
            if name == "*" and dotted.split(".")[0] in SENSITIVE:
                yield dotted, "names on modules"

    def _named(self, node: ast.expr) -> Found:
        return (found for dotted in self._dotted(node) for found in known_names(dotted))

    def _called(self, node: ast.Call) -> Found:
        functions = self._dotted(node.func)
        tails = {name.rpartition(".")[2] for name in functions} | {_tail(node.func)}
        yield from self._named(node)
        yield from self._in_text(self._text(node) or "")
        yield from ((name, CALLED[name]) for name in functions & CALLED.keys())
        if functions & IMPORTERS:
            modules = [self._text(argument) for argument in _arguments(node)]
            yield from (("import of a computed name", "import hooks") for name in modules if name is None)
            yield from ((name, "test files") for name in modules if name and TEST_MODULE.search(name))
        if not tails & BY_NAME:
            return
        texts = [self._text(argument) for argument in node.args[:2]]
        for place in (0, 1) if tails & NAME_FIRST else (1,):
            if place < len(texts) and texts[place] is None and self._is_spelled(node.args[place]):
                yield "attribute with a name spelled out", "names on modules"
        if len(texts) == 2 and tails & SETTERS:
            yield from self._stored(node.args[0], texts[1] or "*")
        elif len(texts) == 2 and texts[1] is None and self._is_module(node.args[0]):
            yield "attribute with a computed name", "names on modules"

    def _stored(self, base: ast.expr, attribute: str) -> Found:
        """An attribute is assigned, deleted, or set by its name."""
        if attribute in STORED:
            yield f"{attribute} =", STORED[attribute]
        for dotted in self._dotted(base):
            if dotted.partition(".")[0] not in self._own:
                yield f"{dotted}.{attribute} =", "names on modules"

    def _in_text(self, text: str) -> Found:
        """A string names what counts, or is code that uses it."""
        yield from known_texts(text)
        if self._nested < MAX_NESTED and len(text) < MAX_CODE and CODE.search(text):
            try:
                inner = uses_in_tree(text.strip(), self._own, self._nested + 1)
            except ValueError:
                return
            yield from ((use.name, use.kind) for use in inner)

    def _is_modules(self, node: ast.expr) -> bool:
        return "sys.modules" in self._dotted(node)

    def _is_module(self, node: ast.expr) -> bool:
        return bool(self._dotted(node) & (SENSITIVE | MODULES.keys()))

    def _is_spelled(self, node: ast.expr) -> bool:
        """Whether a text is put together from characters and constants in a way that is not followed."""
        for part in islice(ast.walk(node), MAX_PARTS):
            match part:
                case ast.Name(id=name) if name in self._spelled:
                    return True
                case ast.Call(func=function, args=arguments):
                    base = [function.value] if isinstance(function, ast.Attribute) else []
                    if _tail(function) in SPELLERS or self._are_constant(arguments or base):
                        return True
                case ast.BinOp(left=left, right=right) if self._are_constant([left, right]):
                    return True
                case _:
                    pass
        return False

    def _are_constant(self, nodes: list[ast.expr]) -> bool:
        parts = (part for node in nodes for part in islice(ast.walk(node), MAX_PARTS))
        leaves = [part for part in parts if isinstance(part, ast.expr)]
        return bool(leaves) and all(
            isinstance(leaf, ast.Constant | ast.List | ast.Tuple | ast.BinOp)
            or (isinstance(leaf, ast.Name) and leaf.id in self._texts)
            for leaf in leaves
        )

    def _dotted(self, node: ast.expr, depth: int = 0) -> set[str]:
        """The dotted names that an expression may stand for; none for one that is not followed."""
        if depth > MAX_DEPTH:
            return set()
        match node:
            case ast.Name(id=name):
                return self._names.get(name, set()) | {f"builtins.{name}" for _ in {name} & self._builtins}
            case ast.Attribute(value=base, attr=attribute):
                return _members(self._dotted(base, depth + 1), attribute)
            case ast.NamedExpr(value=value):
                return self._dotted(value, depth + 1)
            case ast.Subscript(value=base, slice=key):
                text, bases = self._text(key) or "?", self._dotted(base, depth + 1)
                if "sys.modules" in bases:
                    return {text}
                holders = {name.removesuffix(".__dict__") for name in bases if name.endswith(".__dict__")}
                return _members(holders, text) if holders else set()
            case ast.Call(func=function) if self._dotted(function, depth + 1) & IMPORTERS:
                return {self._text(argument) or "?" for argument in _arguments(node)}
            case ast.Call(func=function, args=[first, *more]):
                functions = self._dotted(function, depth + 1)
                if "builtins.vars" in functions:
                    return {f"{name}.__dict__" for name in self._dotted(first, depth + 1)}
                text = self._text(more[0]) if more and "builtins.getattr" in functions else None
                return set() if text is None else _members(self._dotted(first, depth + 1), text)
            case _:
                return set()

    def _text(self, node: ast.expr, depth: int = 0) -> str | None:
        """The string that an expression puts together from parts in the source; None for any other."""
        parts, glue = [node], ""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Constant(value=bytes(data)):
                return data.decode("latin-1")
            case ast.Name(id=name):
                texts = self._texts.get(name, set())
                return next(iter(texts)) if len(texts) == 1 else None
            case ast.Subscript(value=value, slice=ast.Slice(step=ast.UnaryOp(operand=ast.Constant(value=1)))):
                text = None if depth > MAX_DEPTH else self._text(value, depth + 1)
                return None if text is None else text[::-1]
            case ast.FormattedValue(value=value):
                parts = [value]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                parts = [left, right]
            case ast.JoinedStr(values=values):
                parts = values
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(glue)), attr="join"), args=[sequence]):
                parts = sequence.elts if isinstance(sequence, ast.List | ast.Tuple) else [sequence, sequence]
            case _:
                return None
        texts = [self._text(part, depth + 1) for part in parts] if depth < MAX_DEPTH else [None]
        known = [text for text in texts if text is not None]
        return glue.join(known) if len(known) == len(texts) else None


def _members(names: set[str], attribute: str) -> set[str]:
    """What an attribute of these names is: modules are found in each other, as in `os.sys`."""
    module = attribute.lstrip("_")
    return {module} if module in SENSITIVE else {f"{name}.{attribute}" for name in names}


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement or expression assigns, each with its value."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        pairs: list[tuple[ast.expr, ast.expr]] = [(target, node.value)]
        if isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        yield from ((name.id, value) for name, value in pairs if isinstance(name, ast.Name))


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a statement imports, each with the dotted name it stands for."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, alias.name
            if not alias.asname:
                yield alias.name.partition(".")[0], alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        for alias in node.names:
            yield from ((alias.asname or alias.name, member) for member in _members({module}, alias.name))


def _equality(arguments: ast.arguments, body: list[ast.stmt]) -> Found:
    """A comparison that answers without a look at the other object."""
    nodes = [node for statement in body for node in ast.walk(statement)]
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, arguments.vararg) if argument]
    other = names[-1] if names else ""
    answers = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    blind = not any(isinstance(node, ast.Name) and node.id == other for node in nodes)
    if blind and any(ast.unparse(answer) not in ("False", "NotImplemented") for answer in answers):
        yield "__eq__ that ignores the other object", "objects in disguise"


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node makes the name stand for something else."""
    is_stored = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id == name
    return is_stored or (isinstance(node, ast.arg) and node.arg == name)


def _tail(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
