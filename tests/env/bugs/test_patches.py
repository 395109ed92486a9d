"""Variants made by changing loaded functions in place are the variants that an import makes."""

import gc
import importlib.util
import shlex
import sys
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from threading import Event, Thread
from types import CodeType, FunctionType, ModuleType

import pytest

from gumshoe.env.bugs.candidates import candidates
from gumshoe.env.inside.runs.patches import FunctionsOfFiles, apply

NUMBERS = count()
MODULE = '''\
import functools

LIMIT = 3

def scale(value, factor=2, *, offset=LIMIT):
    """Scales."""
    return value * factor + offset

@functools.lru_cache(maxsize=None)
def cached(value):
    return scale(value) + 1

def adder(number):
    def add(other):
        return number + other

    return add

def steps(end):
    for step in range(end):
        yield step * 2

ADD = adder(1)
WAITING = steps(3)

class Box:
    SIZE = 4

    def __init__(self, size=SIZE):
        self.size = size

    @property
    def twice(self):
        return 2 * self.size
'''


@pytest.fixture(autouse=True)
def small_heap() -> Iterator[None]:
    """Keeps all that earlier tests have loaded out of the searches for functions, which take seconds there, and their
    threads from running during one; afterwards, forgets the modules that the test has loaded.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60.0)
    gc.freeze()
    yield
    gc.unfreeze()
    sys.setswitchinterval(interval)
    for name in [name for name in sys.modules if name.startswith("patched_")]:
        del sys.modules[name]


class Loaded:
    """A module loaded from a folder of its own."""

    def __init__(self, folder: Path, text: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.root, self.text = folder, text
        self.path = folder / "module.py"
        self.path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(f"patched_{next(NUMBERS)}", self.path)
        assert spec is not None
        assert spec.loader is not None
        self.module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def patch(self, text: str) -> list[tuple[FunctionType, CodeType]] | None:
        return FunctionsOfFiles(str(self.root), str(self.root)).patch({"module.py": text})

    def patched(self, before: str, after: str) -> ModuleType:
        """The module with a change made in place."""
        assert before in self.text
        patch = self.patch(self.text.replace(before, after))
        assert patch is not None
        apply(patch)
        return self.module

    def functions(self) -> dict[tuple[str, int], CodeType]:
        """The code of its functions, by name and line."""
        return {
            (one.__qualname__, one.__code__.co_firstlineno): one.__code__
            for one in gc.get_objects()
            if type(one) is FunctionType and one.__module__ == self.module.__name__
        }


@pytest.fixture
def box(tmp_path: Path) -> Loaded:
    return Loaded(tmp_path, MODULE)


def test_what_holds_a_function_runs_the_changed_one(box: Loaded, tmp_path: Path) -> None:
    """Decorators, closures, properties, and names in other places."""
    held = box.module.scale
    box.patched("value * factor + offset", "value * factor - offset")
    assert held(2) == 1
    assert box.module.cached(2) == 2
    assert box.patched("number + other", "number - other").ADD(3) == -2
    assert box.patched("2 * self.size", "3 * self.size").Box().twice == 12
    moved = Loaded(tmp_path / "moved", MODULE.replace("WAITING = steps(3)", "WAITING = None")).patched(
        "    return value * factor", "    value += 0\n    return value * factor"
    )
    assert moved.adder.__code__.co_firstlineno == 1 + MODULE.splitlines().index("def adder(number):") + 1
    # A file that is not loaded needs no patch.
    assert FunctionsOfFiles(str(box.root), str(box.root)).patch({"other.py": "anything ("}) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("factor=2", "factor=3"),
        ("size=SIZE", "size=SIZE + 1"),
        ("SIZE = 4", "SIZE = 5"),
        ("maxsize=None", "maxsize=1"),
        ('"""Scales."""', '"""Grows."""'),
        ("def scale(value,", "def scale(number,"),
        ("yield step * 2", "yield step * 3"),
        ("def cached(value)", "def other(value)"),
        ("    return number + other", "    return number + other)"),
    ],
)
def test_what_ran_at_the_import_is_not_changed_in_place(box: Loaded, before: str, after: str) -> None:
    assert box.patch(MODULE.replace(before, after)) is None


def test_candidates_changed_in_place_are_what_an_import_gives(tmp_path: Path) -> None:
    text = Path(shlex.__file__).read_text(encoding="utf-8")
    seen = 0
    for number, candidate in enumerate(islice(candidates(text, 0), 12)):
        made = Loaded(tmp_path / f"here-{number}", text)
        patch = made.patch(candidate.text)
        if patch is not None:
            apply(patch)
            fresh = Loaded(tmp_path / f"fresh-{number}", candidate.text)
            assert made.functions() == fresh.functions(), candidate
            seen += 1
    assert seen >= 7


def test_other_threads_go_on_while_functions_are_searched(box: Loaded) -> None:
    ended = Event()
    problems: list[SystemError] = []

    def build_tuples() -> None:
        while not ended.is_set():
            try:
                tuple(box.path.exists() for _ in range(50))
            except SystemError as problem:
                problems.append(problem)

    thread = Thread(target=build_tuples)
    thread.start()
    for _ in range(20):
        box.patch(MODULE)
    ended.set()
    thread.join()
    assert problems == []
