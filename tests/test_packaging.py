"""The wheel holds one package, `gumshoe`, with everything that it reads at run time and nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

FOLDERS = ("collect", "env", "eval", "tools", "train")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info", ".pytest_cache")


def run(argv: Sequence[str | Path], cwd: Path) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources that a build needs, apart from the working tree: building leaves files behind."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, copy)
    for name in (*FOLDERS, "configs", "src", "tests"):
        shutil.copytree(root / name, copy / name, symlinks=True, ignore=LEFT_OUT)
    return copy


@pytest.fixture(scope="module")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as an installer would, by way of the source distribution, without the network."""
    out = tmp_path_factory.mktemp("dist")
    build = "import sys; from setuptools import build_meta as backend; print(backend.build_sdist(sys.argv[1]))"
    name = run([sys.executable, "-c", build, out], copy).split()[-1]
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    run([*pip, "--wheel-dir", out, out / name], out)
    (made,) = out.glob("*.whl")
    return made


def test_the_wheel_has_one_package_with_every_file_of_ours_and_no_test(wheel: Path, copy: Path, root: Path):
    """Modules, templates, configs and the casebook, with the files in it whose names begin with a dot."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {PurePosixPath(name).parts[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gumshoe"}
    folders = [copy / folder for folder in (*FOLDERS, "configs")]
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    wanted = {"gumshoe/py.typed", *(f"gumshoe/{path.relative_to(copy)}" for path in files)}
    assert wanted <= names, sorted(wanted - names)
    leftovers = (".pyc", "__pycache__", ".pytest_cache")
    assert [name for name in names if any(leftover in name for leftover in leftovers)] == []
    tests = {path.name for path in (root / "tests").rglob("test_*.py")}
    assert tests.isdisjoint(PurePosixPath(name).name for name in names if "/casebook/" not in name)


def test_the_wheel_installs_and_answers(wheel: Path, tmp_path: Path):
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    run([*pip, wheel], tmp_path)
    assert "examples:" in run([environment / "bin" / "gumshoe", "--help"], tmp_path)
    where = run([python, "-c", "import gumshoe; print(gumshoe.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(environment.resolve())
    (site,) = (environment / "lib").glob("python*/site-packages")
    installed = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert installed == {"gumshoe"}


def test_hints_name_the_distribution_and_its_extras(root: Path):
    """What messages and pages ask a user to install exists: the import package has another name than the index's."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    paths = [path for name in (*FOLDERS, "src/gumshoe", "configs", "docs") for path in (root / name).rglob("*")]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.suffix in {".py", ".md", ".yaml"}]
    hints = re.findall(r"\b(gumshoe[\w-]*)\[([a-z,]+)\]", "\n".join(texts))
    assert {name for name, _ in hints} == {project["name"]}
    assert {extra for _, extras in hints for extra in extras.split(",")} <= set(project["optional-dependencies"])
