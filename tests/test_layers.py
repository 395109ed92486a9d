"""Who may import whom: the contracts in pyproject.toml hold, and they notice when they are broken."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
IMPORT_LINTER = Path(sys.executable).with_name("lint-imports")
RUFF = Path(sys.executable).with_name("ruff")

pytestmark = pytest.mark.usefixtures("not_measured")  # What these tests start is not ours.


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


def test_the_layers_hold(root: Path):
    checked = check_layers(root)
    assert checked.returncode == 0, checked.stdout


def test_an_empty_skeleton_keeps_the_layers(skeleton: Path):
    assert check_layers(skeleton).returncode == 0


@pytest.mark.parametrize(
    ("importer", "statement"),
    [
        ("tools", "import gumshoe.env"),
        ("tools", "def late():\n    from gumshoe.eval import results"),
        ("env", "from gumshoe.collect import agent"),
        ("collect", "import gumshoe.eval"),
        ("collect", "import gumshoe.train"),
        ("eval", "import gumshoe.train"),
        ("train", "from gumshoe.tools import base"),
        ("train", "import gumshoe.env"),
        ("env", "import gumshoe.cli"),
        ("env", "import torch"),
        ("collect", "from transformers import AutoTokenizer"),
    ],
)
def test_a_forbidden_import_is_noticed_through_the_links(skeleton: Path, importer: str, statement: str):
    (skeleton / importer / "stray.py").write_text(statement + "\n", encoding="utf-8")
    checked = check_layers(skeleton)
    assert checked.returncode == 1, checked.stdout
    assert f"gumshoe.{importer}.stray" in checked.stdout


def test_an_import_circle_is_noticed_even_inside_of_functions(skeleton: Path):
    (skeleton / "env" / "one.py").write_text("from gumshoe.env import two\n", encoding="utf-8")
    (skeleton / "env" / "two.py").write_text("def late():\n    import gumshoe.env.one\n", encoding="utf-8")
    checked = check_layers(skeleton)
    assert checked.returncode == 1
    assert "side by side BROKEN" in checked.stdout


def test_strings_that_name_modules_of_other_layers_are_known(root: Path):
    """What import-linter cannot see: two programs that run in separate processes, so that nothing else loads torch, and
    the default of a config key, through which training gets its episodes.
    """
    found = set[tuple[str, str]]()
    for path in (path for folder in FOLDERS for path in (root / folder).rglob("*.py")):
        parts = path.relative_to(root).parts
        if "casebook" in parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = (
                node.value.partition(":")[0] if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            )
            _, _, module = name.partition("gumshoe.")
            folder = module.partition(".")[0]
            is_module = name == f"gumshoe.{module}" and (root / f"{module.replace('.', '/')}.py").exists()
            if is_module and parts[0] not in MAY_IMPORT.get(folder, ()):
                found.add(("/".join(parts), name))
    assert found == {
        ("eval/serve/check.py", "gumshoe.train.masks"),
        ("eval/view/masks.py", "gumshoe.train.masks"),
        ("train/config.py", "gumshoe.eval.live"),
    }


def imported(path: Path) -> Iterator[str]:
    """What a module imports when it is loaded; what it imports for type checkers or inside functions does not count."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_eval_has_at_most_six_floors(root: Path):
    """The longest chain of imports within `eval`, where each module and folder directly in it is one floor."""
    below: dict[str, set[str]] = {}
    for path in (root / "eval").rglob("*.py"):
        unit = path.relative_to(root / "eval").parts[0].removesuffix(".py")
        found = {name.split(".")[2] for name in imported(path) if name.startswith("gumshoe.eval.")}
        below.setdefault(unit, set()).update(found - {unit})

    @cache
    def floors(unit: str) -> int:
        return 1 + max(map(floors, below.get(unit, ())), default=0)

    assert max(map(floors, below)) <= 6


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_folders_are_imported_by_their_full_name_only(root: Path, tmp_path: Path, folder: str):
    stray = tmp_path / "stray.py"
    stray.write_text(f"import {folder}\n", encoding="utf-8")
    argv = [RUFF, "check", "--config", root / "pyproject.toml", "--select", "TID251", "--no-cache", stray]
    checked = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 1
    assert "TID251" in checked.stdout


def test_every_folder_with_code_is_a_package(root: Path):
    """The contracts look only into packages: code in a folder without `__init__.py` would escape them."""
    missing = {
        str(path.parent.relative_to(root))
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if "casebook" not in path.relative_to(root).parts and not (path.parent / "__init__.py").exists()
    }
    assert missing == set()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_links_are_relative_and_lead_to_the_folders(root: Path, folder: str):
    link = root / "src" / "gumshoe" / folder
    assert link.is_symlink()
    assert link.readlink() == Path("../..") / folder
