"""What source code uses that lets it find out how it is tested: names, modules and strings.

Python is read as a syntax tree, in which names are followed through imports and no further: a module that matters may
be used as `module.attribute`, and counts itself as soon as it is anything else. Everything else is read as words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import NamedTuple


class Use(NamedTuple):
    """One use in a file: its line from 1, the name by which two uses are the same, and its kind."""

    line: int
    name: str
    kind: str


def _by_name(**kinds: str) -> dict[str, str]:
    return {name: kind.replace("_", " ") for kind, names in kinds.items() for name in names.split()}


WORDS = _by_name(
    frames="_getframe _getframemodulename _current_frames _current_exceptions currentframe f_back f_builtins f_code "
    "f_globals f_lasti f_locals f_trace tb_frame gi_frame cr_frame ag_frame getouterframes getinnerframes "
    "getargvalues extract_stack format_stack print_stack walk_stack walk_tb findCaller stack_info getsource "
    "getsourcelines findsource getframeinfo linecache",
    tracing="settrace setprofile settrace_all_threads setprofile_all_threads _settraceallthreads "
    "_setprofileallthreads addaudithook call_tracing",
    memory="get_objects get_referrers get_referents pythonapi py_object __array_interface__ ctypeslib",
    code_objects="__code__ func_code __closure__ func_closure cell_contents __globals__ func_globals co_code co_consts "
    "co_names co_varnames co_filename co_firstlineno co_lnotab co_lines co_positions",
    import_hooks="meta_path path_hooks path_importer_cache spec_from_file_location spec_from_loader module_from_spec "
    "exec_module SourceFileLoader SourcelessFileLoader ExtensionFileLoader __loader__",
    text_run_as_code="__import__ __builtins__ __subclasses__ execfile unsafe_load UnsafeLoader resolve_name",
    test_runner="PYTEST_CURRENT_TEST _pytest pytest11",
)
"""Identifiers that mean one thing wherever they stand: attributes, names, imports, and words in strings."""
MODULES = _by_name(
    frames="tracemalloc faulthandler",
    tracing="bdb pdb trace cProfile profile sys.monitoring",
    memory="ctypes _ctypes cffi gc _testcapi _testinternalcapi",
    code_objects="marshal dis opcode bytecode",
    import_hooks="imp _imp zipimport runpy site importlib.machinery importlib.abc importlib._bootstrap "
    "importlib._bootstrap_external _frozen_importlib _frozen_importlib_external",
    text_run_as_code="code codeop dill cloudpickle",
    test_runner="pytest _pytest pluggy unittest doctest nose hypothesis xdist",
)
NAMES = _by_name(
    frames="inspect.stack inspect.trace",
    code_objects="types.CodeType",
    import_hooks="sys.modules sys.path importlib.reload codecs.register",
    text_run_as_code="builtins.exec builtins.eval builtins.compile pickle.loads pickle.load pickle.Unpickler "
    "pydoc.locate timeit.timeit timeit.repeat timeit.Timer",
    test_runner="sys.orig_argv",
    names_on_modules="builtins.globals",
)
"""Dotted names, as imports resolve them."""
CALLED = _by_name(code_objects="types.FunctionType types.LambdaType types.CellType")
"""Dotted names that count when they are called: `isinstance(f, types.FunctionType)` is ordinary code."""
STORED = _by_name(
    objects_in_disguise="__class__ __bases__ __eq__ __ne__ __instancecheck__",
    code_objects="__defaults__ __kwdefaults__",
    import_hooks="__path__ __spec__",
)
"""Attributes that count when they are assigned."""
SENSITIVE = {"builtins", "gc", "importlib", "inspect", "sys", "threading"}
"""Modules that count as soon as they are more than the left of a dot, since what becomes of them is not followed."""
BUILTINS = {"__import__", "compile", "eval", "exec", "globals"}
TEXTS = {
    "memory": re.compile(r"/proc/|^/?proc$|/dev/mem\b"),
    "test files": re.compile(
        r"(?:^|/)tests/|^tests$|\btest_\w*(?:\.py\b|\*)|\w_test\.py\b|\bconftest\b|\bPYTEST_[A-Z]+|\*\.py$"
    ),
    "objects in disguise": re.compile(r"^__(?:eq|ne|class)__$"),
}
"""Strings that count wherever they stand, except in docstrings."""
TEST_MODULE = re.compile(r"(?:^|\.)(?:tests|conftest|test_\w+|\w+_tests?)(?:\.|$)|^test(?:\.|$)")
NATIVE = re.compile(
    r"\b(?:PyFrame_\w+|PyEval_(?:Set|Get|Eval)\w+|PyThreadState_\w*Frame\w*|PyCode_\w+|PyUnstable_\w+|PyGC_\w+|"
    r"PyRun_\w+|Py_CompileString\w*|ptrace|dlopen|dlsym|mprotect|process_vm_\w+)\b|/proc/"
)
IMPORTERS = {"builtins.__import__", "importlib.import_module"}
BY_NAME = {"attrgetter", "delattr", "getattr", "hasattr", "methodcaller", "setattr", "__getattribute__", "__setattr__"}
SETTERS = {"delattr", "setattr", "__setattr__"}
SPELLERS = {"base64", "binascii", "bytearray", "bytes", "chr", "codecs", "reversed", "str"}
WORD = re.compile(r"[^\W\d]\w+")
DOTTED = re.compile(r"(?<![\w.])[^\W\d]\w*\.\w+")
IMPORT = re.compile(r"^[ \t]*(?:c?import|from)[ \t]+([\w.]+)(?:[ \t]+c?import[ \t]+(.*))?", re.MULTILINE)
RUN_AS_CODE = re.compile(r"(?<![\w.])(exec|eval|compile|globals)\s*\(")
LONGEST = max(name.count(".") + 1 for table in (MODULES, NAMES) for name in table)
Found = Iterator[tuple[str, str]]
"""Names and their kinds."""


def uses_in_tree(tree: ast.Module, own: Collection[str]) -> set[Use]:
    """The uses in Python source.

    Args:
        tree: its syntax tree.
        own: names of the repository's packages; to set attributes of what they hold is ordinary code.

    Raises:
        ValueError: the tree is too deep.
    """
    try:
        return set(_Tree(tree, own).uses())
    except RecursionError as error:
        raise ValueError(str(error)) from None


def uses_in_words(text: str) -> set[Use]:
    """Coarser: comments and strings count, and names are not followed."""
    found = set[Use]()
    for number, line in enumerate(text.split("\n"), 1):
        found.update(Use(number, *each) for each in _in_text(line))
        found.update(Use(number, f"builtins.{call[1]}", "text run as code") for call in RUN_AS_CODE.finditer(line))
    return found


def uses_in_native_code(text: str) -> set[Use]:
    """The functions of the interpreter and the system that count in C, C++ and Rust."""
    lines = enumerate(text.split("\n"), 1)
    return {Use(number, word[0], "native code") for number, line in lines for word in NATIVE.finditer(line)}


def _known_names(dotted: str) -> Found:
    """What a dotted name uses: words anywhere in it, modules and longer names at its beginning."""
    parts = dotted.split(".")
    yield from ((part, WORDS[part]) for part in parts if part in WORDS)
    starts = {".".join(parts[:end]) for end in range(1, LONGEST + 1)}
    yield from ((name, table[name]) for table in (MODULES, NAMES) for name in starts & table.keys())


def _in_text(text: str) -> Found:
    """What a string uses: words, paths that it has no business with, and names and imports as in code."""
    yield from ((word, WORDS[word]) for word in WORD.findall(text) if word in WORDS)
    yield from ((found[0], kind) for kind, pattern in TEXTS.items() for found in pattern.finditer(text))
    yield from ((name, NAMES[name]) for name in DOTTED.findall(text) if name in NAMES)
    for imported in IMPORT.finditer(text):
        members = WORD.findall(imported[2] or "")
        for dotted in (imported[1], *(f"{imported[1]}.{member}" for member in members)):
            yield from _modules(dotted)


def _modules(dotted: str) -> Found:
    """What an import of a dotted name uses."""
    yield from _known_names(dotted)
    if TEST_MODULE.search(dotted):
        yield dotted, "test files"


class _Tree:
    """One syntax tree."""

    def __init__(self, tree: ast.Module, own: Collection[str]) -> None:
        self._own = {*own, ""}  # A relative import begins with a dot.
        self._nodes = list(ast.walk(tree))
        self._parents = {child: node for node in self._nodes for child in ast.iter_child_nodes(node)}
        self._imports: dict[str, set[str]] = {}
        for node in self._nodes:
            for name, dotted in _imported(node):
                self._imports.setdefault(name, set()).add(dotted)
        top = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        self._builtins = BUILTINS - top - {name for node in tree.body for name, _ in _imported(node)}

    def uses(self) -> Iterator[Use]:
        """Everything that counts."""
        for node in self._nodes:
            yield from (Use(getattr(node, "lineno", 1), *found) for found in self._found(node))

    def _found(self, node: ast.AST) -> Found:
        match node:
            case ast.Import() | ast.ImportFrom():
                for name, dotted in _imported(node):
                    yield from _modules(dotted)
                    if name == "*" and dotted.split(".")[0] in SENSITIVE:
                        yield dotted, "names on modules"
            case ast.Name(id=name):
                yield from ((word, WORDS[word]) for word in {name} & WORDS.keys())
                yield from self._named(node)
                if not self._is_looked_into(node):
                    yield from self._handed_on(node)
            case ast.Attribute(value=base, attr=attribute, ctx=context):
                yield from ((word, WORDS[word]) for word in {attribute} & WORDS.keys())
                yield from () if self._is_lookup(node) else self._named(node)
                if not isinstance(context, ast.Load):
                    yield from self._stored(base, attribute)
                elif attribute in ("__dict__", "__getattribute__"):
                    yield from self._handed_on(base)
                elif not self._is_looked_into(node):
                    yield from self._handed_on(node)
            case ast.Call():
                yield from self._called(node)
                if not self._is_looked_into(node):
                    yield from self._handed_on(node)
            case ast.Constant(value=str() | bytes()) if not isinstance(self._parents[node], ast.Expr):
                yield from _in_text(_text(node) or "")
            case ast.BinOp():
                yield from _in_text(_text(node) or "")
            case ast.MatchClass(kwd_attrs=attributes):
                yield from ((name, WORDS[name]) for name in attributes if name in WORDS)
            case ast.FunctionDef(name="__eq__" | "__ne__", args=arguments, body=body):
                yield from _equality(arguments, body)
            case ast.Assign(targets=[ast.Name(id="__eq__" | "__ne__")], value=ast.Lambda(args=arguments, body=body)):
                yield from _equality(arguments, [ast.Return(body)])
            case _:
                pass

    def _named(self, node: ast.expr) -> Found:
        return (found for dotted in self._dotted(node) for found in _known_names(dotted))

    def _handed_on(self, node: ast.expr) -> Found:
        """A module that matters is a value."""
        yield from ((f"{name} as a value", "names on modules") for name in self._dotted(node) & SENSITIVE)

    def _is_looked_into(self, node: ast.expr) -> bool:
        """Whether a name is more than a value: `sys.x`, `getattr(sys, "x")`, `inspect(x)`."""
        match self._parents[node]:
            case ast.Attribute():
                return True
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[first, second, *_]) if first is node:
                return _text(second) is not None
            case ast.Call(func=function):
                return function is node
            case _:
                return isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)

    def _is_lookup(self, node: ast.Attribute) -> bool:
        """Whether it only asks what is imported: `x in sys.modules`, `sys.modules[__name__]`."""
        match self._parents[node]:
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[where]):
                return where is node
            case ast.Subscript(slice=ast.Name(id="__name__")):
                return not any(_binds(each, "__name__") for each in self._nodes)
            case _:
                return False

    def _called(self, node: ast.Call) -> Found:
        functions = self._dotted(node.func)
        yield from self._named(node)
        yield from ((name, CALLED[name]) for name in functions & CALLED.keys())
        if functions & IMPORTERS:
            modules = [_text(argument) for argument in _arguments(node)]
            yield from (("import_module of a computed name", "import hooks") for name in modules if name is None)
            yield from ((name, "test files") for name in modules if name and TEST_MODULE.search(name))
        tails = {name.rpartition(".")[2] for name in functions} | {_tail(node.func)}
        if tails & BY_NAME and any(map(_is_spelled, node.args[:2])):
            yield "getattr of a name spelled out", "names on modules"
        if tails & SETTERS and len(node.args) > 1:
            yield from self._stored(node.args[0], _text(node.args[1]) or "*")

    def _stored(self, base: ast.expr, attribute: str) -> Found:
        """An attribute is assigned, deleted, or set by its name."""
        if attribute in STORED:
            yield f"{attribute} =", STORED[attribute]
        for dotted in self._dotted(base):
            if dotted.partition(".")[0] not in self._own:
                yield f"{dotted}.{attribute} =", "names on modules"

    def _dotted(self, node: ast.expr) -> set[str]:
        """The dotted names that an expression may stand for; none for one that is not followed."""
        match node:
            case ast.Name(id=name):
                return self._imports.get(name, set()) | {f"builtins.{name}" for _ in {name} & self._builtins}
            case ast.Attribute(value=base, attr=attribute):
                return _members(self._dotted(base), attribute)
            case ast.Call(func=ast.Name(id="getattr"), args=[base, name, *_]):
                text = _text(name)
                return set() if text is None else _members(self._dotted(base), text)
            case ast.Call(func=function) if self._dotted(function) & IMPORTERS:
                return {_text(argument) or "?" for argument in _arguments(node)}
            case _:
                return set()


def _text(node: ast.expr) -> str | None:
    """The string that an expression is; None for any other."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(data)):
            return data.decode("latin-1")
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _text(left), _text(right)
            return None if first is None or second is None else first + second
        case _:
            return None


def _is_spelled(node: ast.expr) -> bool:
    """Whether a text stands in the source, but in pieces that `_text` does not join."""
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    in_pieces = isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr | ast.Subscript) and _text(node) is None
    return in_pieces and names <= SPELLERS


def _members(names: set[str], attribute: str) -> set[str]:
    """What an attribute of these names is: modules are found in each other, as in `os.sys`."""
    module = attribute.lstrip("_")
    return {module} if names and module in SENSITIVE else {f"{name}.{attribute}" for name in names}


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
    answers = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    blind = not any(isinstance(node, ast.Name) and node.id in names[-1:] for node in nodes)
    if blind and any(ast.unparse(answer) not in ("False", "NotImplemented") for answer in answers):
        yield "__eq__ that ignores the other object", "objects in disguise"


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node makes the name stand for something else."""
    is_stored = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and node.id == name
    return is_stored or (isinstance(node, ast.arg) and node.arg == name)


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _tail(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
