"""The files of a project: what they hold, where they move to, and writing them there."""

from __future__ import annotations

import ast
import re
import shutil
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import libcst as cst

from gumshoe.env.harvest.rename.names import Names
from gumshoe.env.harvest.rename.prose import in_config, in_prose
from gumshoe.env.harvest.rename.rewrite import rewrite

__all__ = ["RewrittenFiles", "Tree", "is_document", "new_path", "read_tree", "write_tree"]

# Python files that are run or read by name.
KEPT = frozenset({"conftest", "setup", "noxfile", "tasks", "__init__", "__main__", "versioneer", "conf"})
CONFIGS = re.compile(
    r"^(?:pyproject\.toml|setup\.cfg|tox\.ini|\.?pytest\.(?:ini|toml)|\.coveragerc|MANIFEST\.in|Makefile)$"
)
# Sources in other languages, and what they are built into: their words have to stay.
OTHER_CODE = frozenset({".c", ".h", ".cc", ".cpp", ".pyx", ".pxd", ".pxi", ".so", ".rs"})
TELLING = re.compile(
    r"^(?:(?:readme|changes|changelog|history|news|authors|contributors|contributing|licen[cs]e|copying|notice|citation"
    r"|security|code_of_conduct|todo|agents|claude|release|pkg-info|install|thanks|maintainers)(?![a-z]*\.py$).*"
    r"|.*\.lock|docs?|examples?|benchmarks?|changelog\.d|newsfragments|\.github|\.circleci|.*\.egg-info|\.readthedocs.*"
    r"|mkdocs\.yml|\.travis\.yml|appveyor\.yml|.*\.code-workspace|\.git[a-z-]+|\.pre-commit-config\.yaml)$",
    re.IGNORECASE,
)
TEXTS = frozenset({".rst", ".md", ".txt"})
LINK = re.compile(r"""(?m)^\s*["\w. -]+=\s*["']?(?:https?|git)\S*://\S+\s*$\n?""")
DESCRIPTION = re.compile(
    r"""(?m)^(?:description|authors?|author[_-]email|maintainers?|maintainer[_-]email|keywords|license|readme|long_description"""
    r"""|url)\s*=\s*(?:"[^"\n]+"|'[^'\n]+'|\[[^]\n]*\]|\{[^}\n]*\}|[^"'\[{\s][^\n]*)[ \t]*\n(?![ \t])"""
)
MAX_BYTES = 4 << 20
IDENTIFIER = re.compile(r"[A-Za-z_]\w+")


@dataclass
class Tree:
    """The files of a project.

    Attributes:
        folder: where they are.
        texts: the Python files that can be read, by path.
        trees: their syntax trees.
        packages: the folders that are packages, relative.
        fixed: the words of files that cannot be rewritten.
    """

    folder: Path
    texts: dict[str, str] = field(default_factory=dict[str, str])
    trees: dict[str, ast.Module] = field(default_factory=dict[str, ast.Module])
    packages: set[str] = field(default_factory=set[str])
    fixed: set[str] = field(default_factory=set[str])

    @property
    def modules(self) -> frozenset[str]:
        """The names of the project's modules and packages."""
        stems = {PurePosixPath(path).stem for path in self.texts}
        return frozenset(
            name for name in stems | {PurePosixPath(path).name for path in self.packages} if name not in KEPT
        )


def read_tree(folder: Path) -> Tree:
    """Reads a project; documents about it are not part of it."""
    tree = Tree(folder)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
            continue
        if path.suffix in OTHER_CODE and not is_document(name):
            words = re.findall(rb"[A-Za-z_]\w{2,}", path.read_bytes())
            tree.fixed.update(word.decode() for word in words)
            tree.fixed.add(path.name.partition(".")[0])
        elif path.suffix in (".py", ".pyi"):
            _read(tree, name, path)
    return tree


def _read(tree: Tree, name: str, path: Path) -> None:
    data = path.read_bytes()
    try:
        text = data.decode("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree.trees[name] = ast.parse(text)
        cst.parse_module(text)
    except (SyntaxError, ValueError, RecursionError, cst.ParserSyntaxError):
        tree.trees.pop(name, None)
        tree.fixed.update(IDENTIFIER.findall(data.decode("utf-8", "replace")))
        return
    tree.texts[name] = text
    if path.name == "__init__.py" and "/" in name:
        tree.packages.add(name.rpartition("/")[0])


def is_document(path: str) -> bool:
    """Whether a file describes a project and is not part of its code."""
    first, *others = path.split("/")
    return TELLING.match(first) is not None or any(part.endswith(".egg-info") for part in others)


def new_path(path: str, tree: Tree, names: Names) -> str:
    """Where a file of the project belongs."""
    parts = PurePosixPath(path).parts
    found: list[str] = []
    for number, part in enumerate(parts):
        here = "/".join(parts[: number + 1])
        if here in tree.packages:
            part = names.variable(part)
        elif number == len(parts) - 1 and here in tree.texts:
            stem, dot, rest = part.partition(".")
            part = (stem if stem in KEPT else names.variable(stem)) + dot + rest
        found.append(part)
    return "/".join(found)


def write_tree(
    tree: Tree, names: Names, target: Path, own: frozenset[str], kept: Iterable[str], cache: RewrittenFiles
) -> None:
    """Writes the renamed project to `target`; documents are left out, except those in `kept`."""
    shutil.rmtree(target, ignore_errors=True)
    keeping = set(kept)
    for path in sorted(tree.folder.rglob("*")):
        name = path.relative_to(tree.folder).as_posix()
        if (is_document(name) and name not in keeping) or (path.is_dir() and not path.is_symlink()):
            continue
        new = target / new_path(name, tree, names)
        new.parent.mkdir(parents=True, exist_ok=True)
        if name in tree.texts:
            new.write_text(cache.rewritten(name, tree.texts[name], names, own), encoding="utf-8", newline="")
        elif CONFIGS.match(path.name) and not path.is_symlink():
            text = path.read_text(encoding="utf-8", errors="replace")
            new.write_text(in_config(_without_description(text), names), encoding="utf-8")
        elif path.suffix in TEXTS and name in keeping:
            new.write_text(in_prose(path.read_text(encoding="utf-8", errors="replace"), names), encoding="utf-8")
        else:
            shutil.copy2(path, new, follow_symlinks=False)
        if not new.is_symlink():
            new.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)


def _without_description(text: str) -> str:
    """A configuration file without the lines that only describe a project, or name a place on the network."""
    return DESCRIPTION.sub("", LINK.sub("", text))


class RewrittenFiles:
    """The rewritten files, kept: putting back a name changes few of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, frozenset[str]], str] = {}

    def rewritten(self, path: str, text: str, names: Names, own: frozenset[str]) -> str:
        """The text of a file with its names replaced."""
        used = frozenset(word for word in set(IDENTIFIER.findall(text)) if word in names.new)
        key = (path, used)
        if key not in self._known:
            self._known[key] = rewrite(text, names, own)
        return self._known[key]
