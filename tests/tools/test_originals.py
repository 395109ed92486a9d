"""The test files that a verdict reads before anything of the repository runs, in real runs of pytest."""

from __future__ import annotations

import importlib.util
import marshal
import subprocess
import sys
from pathlib import Path

import pytest

from gumshoe.tools.inside import gumshoe_verdict

INSIDE = Path(gumshoe_verdict.__file__).parent
TEST = "def test_it():\n    assert 1 == 2\n"
EASY = "def test_it():\n    pass\n"
# As a verdict does: the originals first, then whatever the repository does, then pytest.
PROGRAM = """\
import os, sys
sys.path.append({inside!r})
import gumshoe_originals
import pytest
ahead = gumshoe_originals.compile_ahead(os.getcwd(), {paths!r})
exec(open("before.py").read())
originals = gumshoe_originals.Originals(os.getcwd(), {paths!r}, ahead)
originals.hold()
exec(open("meanwhile.py").read())
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider"]))
"""


def outcome(folder: Path, paths: tuple[str, ...] = ("tests/test_it.py",), meanwhile: str = "", before: str = "") -> str:
    """The last line of a run of the tests. `before` runs before the originals are read, `meanwhile` after that."""
    (folder / "meanwhile.py").write_text(meanwhile)
    (folder / "before.py").write_text(before)
    program = PROGRAM.format(inside=str(INSIDE), paths=paths)
    argv = [sys.executable, "-B", "-c", program]
    run = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False, timeout=240)
    return run.stdout.strip().splitlines()[-1].partition(" in ")[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_it.py").write_text(TEST)
    return folder


def lay_byte_code(test: Path, code: str, *, of: bytes, name: str | None = None) -> None:
    """Byte code as pytest 9.2 keeps it for a source."""
    from _pytest.assertion import rewrite

    compiled = marshal.dumps(compile(code, name or str(test), "exec"))
    place = test.parent / "__pycache__" / f"{test.stem}{rewrite.PYC_TAIL}"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(importlib.util.MAGIC_NUMBER + b"\3\0\0\0" + importlib.util.source_hash(of) + compiled)


def test_files_are_taken_as_they_were(project: Path) -> None:
    assert outcome(project) == "1 failed"
    assert outcome(project, meanwhile=f"open('tests/test_it.py', 'w').write({EASY!r})") == "1 failed"
    assert outcome(project) == "1 passed"


def test_files_that_do_not_decide_are_left_to_pytest(project: Path) -> None:
    assert outcome(project, (), f"open('tests/test_it.py', 'w').write({EASY!r})") == "1 passed"
    assert outcome(project, ("tests/gone.py", "../../outside.py")) == "1 passed"


def test_conftests_of_the_tests_that_decide_are_held(project: Path) -> None:
    fixture = "import pytest\n\n@pytest.fixture(autouse=True)\ndef fail():\n    assert {}\n"
    (project / "tests" / "test_it.py").write_text(EASY)
    (project / "conftest.py").write_text(fixture.format("False"))
    easy = f"open('conftest.py', 'w').write({fixture.format('True')!r})"
    assert outcome(project, meanwhile=easy) == "1 error"


def test_byte_code_that_was_there_is_taken_where_it_fits(project: Path) -> None:
    test = project / "tests" / "test_it.py"
    lay_byte_code(test, EASY, of=TEST.encode())
    assert outcome(project) == "1 passed"
    lay_byte_code(test, EASY, of=b"other")
    assert outcome(project) == "1 failed"
    lay_byte_code(test, EASY, of=TEST.encode(), name="elsewhere.py")
    assert outcome(project) == "1 failed"


@pytest.mark.parametrize("data", [b"", b"junk", importlib.util.MAGIC_NUMBER + b"\3\0\0\0"])
def test_damaged_byte_code_is_passed_over(project: Path, data: bytes) -> None:
    test = project / "tests" / "test_it.py"
    lay_byte_code(test, EASY, of=TEST.encode())
    (place,) = test.parent.glob("__pycache__/*.pyc")
    whole = place.read_bytes()
    for content in (data, whole[:16], whole[:40], whole[:16] + marshal.dumps("no code")):
        place.write_bytes(content)
        assert outcome(project) == "1 failed"


def test_byte_code_that_is_written_later_is_not_taken(project: Path) -> None:
    test = project / "tests" / "test_it.py"
    lay_byte_code(test, EASY, of=TEST.encode())
    (place,) = test.parent.glob("__pycache__/*.pyc")
    later = f"open({str(place)!r}, 'wb').write({place.read_bytes()!r})"
    place.unlink()
    assert outcome(project, meanwhile=later) == "1 failed"
    place.unlink()
    assert outcome(project, (), later) == "1 failed"


def test_what_was_compiled_ahead_is_taken_as_long_as_the_file_is_the_same(project: Path) -> None:
    spoiled = "gumshoe_originals._rewrite_asserts = lambda mod, source, *_: 1 / 0"
    assert outcome(project, before=spoiled) == "1 failed"
    easy = f"open('tests/test_it.py', 'w').write({EASY!r})"
    assert outcome(project, before=easy) == "1 passed"
    (project / "tests" / "test_it.py").write_text(TEST)
    (project / "pytest.ini").write_text("[pytest]\nenable_assertion_pass_hook = true\n")
    assert outcome(project, before=spoiled) == "1 error"


def test_a_file_that_warns_or_is_no_python_is_not_compiled_ahead(project: Path) -> None:
    text = "def test_it():\n    assert (1 == 2, 'always true')\n"
    (project / "tests" / "test_it.py").write_text(text)
    assert outcome(project) == outcome(project, ()) == "1 passed, 1 warning"
    (project / "tests" / "test_it.py").write_text("def test_it(:\n")
    assert outcome(project) == "1 error"
