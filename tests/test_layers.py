"""Who may import whom and what an import brings along: the contracts in pyproject.toml hold, and notice when they are
broken; and importing is cheap and quiet.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
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
IMPORT_LINTER = Path(sys.executable).with_name("lint-imports")


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


def test_an_import_circle_is_noticed_even_inside_of_functions(skeleton: Path):
    (skeleton / "env" / "one.py").write_text("from gumshoe.env import two\n", encoding="utf-8")
    (skeleton / "env" / "two.py").write_text("def late():\n    import gumshoe.env.one\n", encoding="utf-8")
    checked = check_layers(skeleton)
    assert checked.returncode == 1
    assert "side by side BROKEN" in checked.stdout


def test_every_forbidden_import_is_noticed_through_the_links(skeleton: Path):
    """Those inside of functions, too; and nothing is wrong with the skeleton itself."""
    assert check_layers(skeleton).returncode == 0
    for number, (importer, statement) in enumerate(FORBIDDEN):
        (skeleton / importer / f"stray_{number}.py").write_text(statement + "\n", encoding="utf-8")
    checked = check_layers(skeleton)
    assert checked.returncode == 1, checked.stdout
    strays = [f"gumshoe.{importer}.stray_{number}" for number, (importer, _) in enumerate(FORBIDDEN)]
    assert [stray for stray in strays if stray not in checked.stdout] == []


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


def test_every_folder_with_code_is_a_package(root: Path):
    """The contracts look only into packages: code in a folder without `__init__.py` would escape them."""
    missing = {str(path.parent) for path in modules(root) if not (root / path.parent / "__init__.py").exists()}
    assert missing == set()


def test_the_links_are_relative_and_lead_to_the_folders(root: Path):
    assert [(root / "src" / "gumshoe" / folder).readlink() for folder in FOLDERS] == [
        Path("../..") / folder for folder in FOLDERS
    ]


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
    argv = [sys.executable, "-W", "error", "-c", PROBE.format(module=module)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    assert banned.isdisjoint(seen["modules"]), sorted(banned.intersection(seen["modules"]))
    assert seen["handlers"] == []
    assert seen["threads"] == 1
    assert list(tmp_path.iterdir()) == []


def test_an_evaluation_and_its_page_need_no_web_server(tmp_path: Path):
    """`gumshoe eval` and `gumshoe view --static` work without the extra `view`."""
    blocked = "import sys; sys.modules['uvicorn'] = sys.modules['starlette'] = None; "
    modules = "import gumshoe.eval.commands.eval, gumshoe.eval.evaluate, gumshoe.eval.view.static"
    done = subprocess.run(
        [sys.executable, "-c", blocked + modules], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
