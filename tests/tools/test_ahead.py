"""What pytest does ahead leaves its runs as they are, in real runs of pytest."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.tools.inside import gumshoe_verdict

INSIDE = Path(gumshoe_verdict.__file__).parent
TEST = "def test_it(tmp_path, recwarn, request, mine):\n    assert mine > 0\n"
CONFTEST = """\
import pytest

def pytest_addoption(parser):
    parser.addoption("--mine", type=int, default=1)

def pytest_configure(config):
    if hasattr(config._parser, "_getparser"):
        config._parser._getparser().set_defaults(mine=7)
        assert config._parser.parse(["x"]).mine == 1

@pytest.fixture
def mine(request):
    return request.config.getoption("--mine")
"""
# As a test server and a verdict do: pytest is loaded, what can be done ahead is done, and then it runs.
PROGRAM = """\
import importlib, os, sys
sys.path.append({inside!r})
import _pytest.config
for name in _pytest.config.default_plugins:
    importlib.import_module("_pytest." + name)
import gumshoe_ahead
sys.argv[0] = "server.py"
if {ahead}:
    gumshoe_ahead.prepare({prepared!r}, "pytest.main()")
    gumshoe_ahead.pass_over_ours()
    cells = [cell.cell_contents for cell in _pytest.config.get_config.__closure__]
    kept = next(each for each in cells if type(each) is list and each and hasattr(each[0], "invocation_params"))
os.environ.update({variables!r})
sys.argv[0] = "pytest"
code = _pytest.config.main({arguments!r})
if {ahead}:
    print("left" if kept else "taken", file=sys.stderr)
sys.exit(code)
"""


def run(
    folder: Path, *arguments: str, prepared: list[str] | None = None, path: Path | None = None, **variables: str
) -> str:
    """What a run prints, without its time.

    Args:
        folder: where.
        prepared: for which arguments it was prepared, None for not at all.
        path: a folder with another pytest.
    """
    program = PROGRAM.format(
        inside=str(INSIDE),
        ahead=prepared is not None,
        prepared=prepared,
        variables=variables,
        arguments=list(arguments),
    )
    argv = [sys.executable, "-B", "-c", program]
    environment = {**os.environ, **({"PYTHONPATH": str(path)} if path is not None else {})}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)
    lines = [re.sub(r" in \d+\.\d+s.*", "", line) for line in (done.stdout + done.stderr).splitlines()]
    return "\n".join([*lines, f"exit code {done.returncode}"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_it.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    return tmp_path


@pytest.fixture(scope="module", params=["pytest==7.4.4", ""], ids=lambda name: name or "own")
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """A folder with another pytest, from before it kept its parser of options; None for the one that runs this."""
    if not request.param:
        return None
    folder = tmp_path_factory.mktemp("pytest")
    argv = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), request.param]
    subprocess.run(argv, check=True, timeout=300)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [["-v"], ["-q", "-p", "no:cacheprovider"], ["--fixtures"], ["--nonsense"], ["--mine=2"], ["--mine=x"], ["--help"]],
)
def test_a_prepared_run_says_what_another_says(project: Path, path: Path | None, arguments: list[str]) -> None:
    assert run(project, *arguments, prepared=arguments, path=path) == taken(run(project, *arguments, path=path))


def test_what_pytest_does_not_read_does_not_matter(project: Path) -> None:
    assert "taken" in run(project, "-q", prepared=["-q"], TOX_OVERRIDE="testenv.pass_env+=GUMSHOE_*")


def test_what_does_not_fit_is_made_anew(project: Path, tmp_path: Path) -> None:
    arguments = ["-q", "-p", "no:warnings"]
    assert run(project, *arguments, prepared=["-q"]) == taken(run(project, *arguments), "left")
    assert "left" in run(project, "-q", prepared=["-q"], TOX_ENV_DIR=str(tmp_path / "elsewhere"))
    assert (tmp_path / "elsewhere" / ".pytest_cache").is_dir()


def test_a_fixture_that_is_put_into_a_module_of_pytests_is_found(project: Path) -> None:
    (project / "conftest.py").write_text(f"{CONFTEST}\nimport _pytest.tmpdir\n_pytest.tmpdir.mine = mine\ndel mine\n")
    assert "1 passed" in run(project, "-q", prepared=["-q"])
    (project / "conftest.py").write_text("import _pytest.tmpdir\n\ndel _pytest.tmpdir.tmp_path\n")
    assert "fixture 'tmp_path' not found" in run(project, "-q", prepared=["-q"])


def test_plugins_of_other_names_are_looked_for(project: Path) -> None:
    assert "nothing_there" in run(project, "-p", "nothing_there", prepared=["-p", "nothing_there"])
    (project / "gumshoe_mine.py").write_text("def pytest_report_header():\n    return 'mine is here'\n")
    assert "mine is here" in run(project, "-p", "gumshoe_mine", prepared=[], PYTHONPATH=str(project))


def taken(printed: str, word: str = "taken") -> str:
    """What a run prints that says at its end whether the configuration was taken."""
    text, _, code = printed.rpartition("\n")
    return f"{text}\n{word}\n{code}"
