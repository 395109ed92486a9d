"""Who may import whom and what an import brings along: the contracts in pyproject.toml hold, and notice when they are
broken; importing is cheap and quiet; and one name has one meaning.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDERS = ("collect", "env", "eval", "tools", "train")
MAY_IMPORT = {
    "tools": ("tools", "env", "collect", "eval"),
    "env": ("env", "collect", "eval"),
    "collect": ("collect", "eval"),
    "eval": ("eval",),
    "train": ("train",),
}
"""Who may import a folder."""
FORBIDDEN = [
    ("tools", "import gumshoe.env"),
    ("tools", "def late():\n    from gumshoe.eval import score"),
    ("env", "from gumshoe.collect import agent"),
    ("collect", "import gumshoe.eval"),
    ("collect", "import gumshoe.train"),
    ("eval", "import gumshoe.train"),
    ("train", "from gumshoe.tools import base"),
    ("train", "import gumshoe.env"),
    ("env", "import gumshoe.cli"),
    ("env", "import torch"),
    ("collect", "from transformers import AutoTokenizer"),
]
CONTRACTS = {"Episode", "Request", "Session", "Workspace"}
"""Protocols, and the classes that fulfill them."""
IMPORT_LINTER = Path(sys.executable).with_name("lint-imports")
RUFF = Path(sys.executable).with_name("ruff")


def check_layers(repository: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [IMPORT_LINTER, "--no-cache"],
        cwd=repository,
        env={**os.environ, "PYTHONPATH": "src", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def skeleton(root: Path, tmp_path: Path) -> Path:
    """A repository with our links and contracts, the vocabulary, and no code in the five folders."""
    shutil.copy(root / "pyproject.toml", tmp_path)
    shutil.copytree(root / "src", tmp_path / "src", symlinks=True, ignore=shutil.ignore_patterns("*.egg-info"))
    (tmp_path / "configs").mkdir()
    for folder in (*FOLDERS, "env/inside", "env/sandboxes", "env/workspace"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
    return tmp_path


@pytest.mark.usefixtures("not_measured")
def test_the_layers_hold(root: Path):
    checked = check_layers(root)
    assert checked.returncode == 0, checked.stdout


def test_an_empty_skeleton_keeps_the_layers_and_every_forbidden_import_is_noticed_through_the_links(skeleton: Path):
    assert check_layers(skeleton).returncode == 0
    for number, (importer, statement) in enumerate(FORBIDDEN):
        (skeleton / importer / f"stray_{number}.py").write_text(statement + "\n", encoding="utf-8")
    checked = check_layers(skeleton)
    assert checked.returncode == 1, checked.stdout
    missed = [
        each for number, each in enumerate(FORBIDDEN) if f"gumshoe.{each[0]}.stray_{number}" not in checked.stdout
    ]
    assert missed == []


def test_an_import_circle_is_noticed_even_inside_of_functions(skeleton: Path):
    (skeleton / "env" / "one.py").write_text("from gumshoe.env import two\n", encoding="utf-8")
    (skeleton / "env" / "two.py").write_text("def late():\n    import gumshoe.env.one\n", encoding="utf-8")
    checked = check_layers(skeleton)
    assert checked.returncode == 1
    assert "side by side BROKEN" in checked.stdout


@cache
def modules(root: Path) -> dict[Path, ast.Module]:
    """Every module of the five folders and of the vocabulary, parsed, by its path from the root."""
    vocabulary = root / "src" / "gumshoe"
    paths = [path for folder in FOLDERS for path in (root / folder).rglob("*.py")]
    return {
        path.relative_to(root): ast.parse(path.read_text(encoding="utf-8"))
        for path in (*paths, *(vocabulary / "records").rglob("*.py"), vocabulary / "protocols.py")
        if "casebook" not in path.parts
    }


def test_strings_that_name_modules_of_other_layers_are_known(root: Path):
    """What import-linter cannot see: a program that runs in a separate process, so that nothing else loads torch, and
    the default of a config key, through which training gets its episodes.
    """
    found = set[tuple[str, str]]()
    for path, tree in modules(root).items():
        for node in ast.walk(tree):
            name = (
                node.value.partition(":")[0] if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            )
            _, _, module = name.partition("gumshoe.")
            folder = module.partition(".")[0]
            is_module = name == f"gumshoe.{module}" and (root / f"{module.replace('.', '/')}.py").exists()
            if is_module and path.parts[0] not in MAY_IMPORT.get(folder, ()):
                found.add((path.as_posix(), name))
    assert found == {
        ("eval/masks.py", "gumshoe.train.masks"),
        ("train/config.py", "gumshoe.eval.live"),
    }


def imported(tree: ast.Module) -> Iterator[str]:
    """What a module imports when it is loaded; what it imports for type checkers or inside functions does not count."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_eval_has_at_most_six_floors(root: Path):
    """The longest chain of imports within `eval`, where each module and folder directly in it is one floor."""
    below: dict[str, set[str]] = {}
    for path, tree in modules(root).items():
        if path.parts[0] != "eval":
            continue
        unit = path.parts[1].removesuffix(".py")
        found = {name.split(".")[2] for name in imported(tree) if name.startswith("gumshoe.eval.")}
        below.setdefault(unit, set()).update(found - {unit})

    @cache
    def floors(unit: str) -> int:
        return 1 + max(map(floors, below.get(unit, ())), default=0)

    assert max(map(floors, below)) <= 6


def test_the_folders_are_imported_by_their_full_name_only(root: Path, tmp_path: Path):
    stray = tmp_path / "stray.py"
    stray.write_text("".join(f"import {folder}\n" for folder in FOLDERS), encoding="utf-8")
    argv = [RUFF, "check", "--config", root / "pyproject.toml", "--select", "TID251", "--no-cache", stray]
    checked = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 1
    assert checked.stdout.count("TID251 `") == len(FOLDERS)


def test_no_two_public_classes_have_one_name(root: Path):
    found = defaultdict[str, list[str]](list)
    for path, tree in modules(root).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path))
    assert {name: where for name, where in found.items() if len(where) > 1 and name not in CONTRACTS} == {}


def test_every_folder_with_code_is_a_package(root: Path):
    """The contracts look only into packages: code in a folder without `__init__.py` would escape them."""
    missing = {str(path.parent) for path in modules(root) if not (root / path.parent / "__init__.py").exists()}
    assert missing == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_links_are_relative_and_lead_to_the_folders(root: Path, folder: str):
    link = root / "src" / "gumshoe" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("../..") / folder


PROBE = """
import json, logging, sys, threading
before = set(sys.modules)
import {module}
print(json.dumps({{
    "modules": sorted({{name.partition(".")[0] for name in sys.modules}}),
    "handlers": [repr(handler) for handler in logging.getLogger().handlers],
    "threads": threading.active_count(),
}}))
"""


def modules_after(module: str, cwd: Path) -> dict[str, Any]:
    """What is there after `import module` in a fresh interpreter that was started in `cwd`."""
    argv = [sys.executable, "-W", "error", "-c", PROBE.format(module=module)]
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("gumshoe", {"pydantic", "yaml"}),
        ("gumshoe.cli", {"torch", "datasets", "ray", "docker", "gymnasium", "numpy", "openai", "pydantic"}),
        ("gumshoe.tools", {"torch", "transformers", "datasets", "ray", "docker", "gymnasium", "numpy", "libcst"}),
        ("gumshoe.env", {"torch", "transformers", "datasets", "ray", "pandas", "docker", "openai", "gymnasium"}),
        ("gumshoe.collect", {"torch", "transformers", "datasets", "ray", "pandas"}),
        ("gumshoe.eval", {"torch", "transformers", "trl", "ray"}),
        ("gumshoe.eval.view.library", {"torch", "docker", "gymnasium"}),
        ("gumshoe.train", {"torch", "docker", "gymnasium"}),
    ],
)
def test_an_import_brings_nothing_heavy_and_does_nothing(module: str, banned: set[str], tmp_path: Path):
    seen = modules_after(module, tmp_path)
    assert banned.isdisjoint(seen["modules"]), sorted(banned.intersection(seen["modules"]))
    assert seen["handlers"] == []
    assert seen["threads"] == 1
    assert list(tmp_path.iterdir()) == []


def test_the_folders_are_not_modules_of_their_own(tmp_path: Path):
    """`import env` must not work for those who install the package: only `gumshoe.env` exists."""
    code = f"import importlib.util as u; print([name for name in {FOLDERS} if u.find_spec(name)])"
    argv = [sys.executable, "-P", "-c", code]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_an_evaluation_and_its_page_need_no_web_server(tmp_path: Path):
    """`gumshoe eval` and `gumshoe view --static` work without the extra `view`."""
    blocked = "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None; "
    modules = "import gumshoe.eval.commands.eval, gumshoe.eval.evaluate, gumshoe.eval.view.static"
    done = subprocess.run(
        [sys.executable, "-c", blocked + modules], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
