"""Judging candidates in a real sandbox."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gumshoe.env.bugs.candidates import Candidate
from gumshoe.env.bugs.judging import CandidateVerdict, ProjectJudge, UnfitTests
from gumshoe.env.bugs.projects import Project, Suite
from gumshoe.errors import TaskError
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

CLEAN = """\
SCALE = 2

def double(n):
    total = 0
    while n > 0:
        total += SCALE
        n -= 1
    return total

def half(n):
    return n // 2

def unused(n):
    return n
"""
TESTS = """\
import os

import pytest

from calc.core import double, half

def test_double():
    assert double(3) == 6

def test_half():
    assert half(4) == 2

def test_zero(tmp_path):
    (tmp_path / "leftover").write_text("x")
    assert not os.path.exists("left-behind")
    open("left-behind", "w").close()
    assert double(0) == 0

@pytest.mark.skip
def test_skipped(): ...

@pytest.mark.xfail(strict=True)
def test_expected():
    assert half(3) == 1.5
"""


def opened(project: Path, suite: Suite | None = None) -> contextlib.closing[ProjectJudge]:
    return contextlib.closing(ProjectJudge(Project("calc", project, "", suite or Suite()), CHEAPEST))


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProjectJudge]:
    files = {"calc/__init__.py": "", "calc/core.py": CLEAN, "tests/test_core.py": TESTS}
    with opened(write_files(tmp_path_factory.mktemp("calc"), files)) as made:
        yield made


def variant(old: str, new: str, *, path: str = "calc/core.py", clean: str = CLEAN) -> Candidate:
    assert clean.count(old) == 1
    line = clean[: clean.index(old)].count("\n") + 1
    return Candidate(path, "x", "f", clean.replace(old, new), (line,))


STATUSES = {
    ("n // 2", "n // 3"): "killed",
    ("n // 2", "n // [][n]"): "killed",
    ("SCALE = 2", "SCALE = 3"): "killed",  # at the import, so the whole suite is run
    ("n > 0", "n >= 1"): "survived",
    ("    return n\n", "    return -n\n"): "uncovered",
    ("n -= 1", "n -= 0"): "timeout",
    ("SCALE = 2", "SCALE = undefined"): "collection",
    ("def half(", "def halve("): "collection",
    ("n // 2", "__import__('os')._exit(3)"): "crashed",
    ("n // 2", "__import__('os').abort()"): "crashed",
    ("n // 2", "__import__('time').time_ns()"): "flaky",
}
"""Changes of the project, each with what becomes of it."""


@pytest.fixture(scope="module")
def verdicts(judge: ProjectJudge) -> dict[str, CandidateVerdict]:
    """The verdicts on all changes, by the new code."""
    answers = judge.judge([variant(old, new) for old, new in STATUSES])
    return {new: answer for (_, new), answer in zip(STATUSES, answers, strict=True)}


def test_each_change_gets_its_status(judge: ProjectJudge, verdicts: dict[str, CandidateVerdict]) -> None:
    assert {new: verdicts[new].status for _, new in STATUSES} == {new: status for (_, new), status in STATUSES.items()}
    names = ("test_double", "test_half", "test_zero", "test_expected")
    assert judge.passing == tuple(f"tests/test_core.py::{name}" for name in names)


def test_a_bug_that_a_test_notices_is_told_with_its_failure(
    judge: ProjectJudge, verdicts: dict[str, CandidateVerdict]
) -> None:
    found = verdicts["n // 3"]
    assert found.failures is not None
    (failing,) = found.failures.items()
    assert failing[0] == "tests/test_core.py::test_half"
    assert failing[1].type == "AssertionError"
    assert failing[1].message.startswith("AssertionError: assert 1 == 2")
    assert failing[1].frames[-1][0::2] == ("tests/test_core.py", "test_half")
    assert found.passing == tuple(test for test in judge.passing if test != failing[0])
    raised = verdicts["n // [][n]"].failures
    assert raised is not None
    assert raised["tests/test_core.py::test_half"].frames[-1] == ("calc/core.py", 11, "half")


HALF = "def half(n):\n    return n // 2\n"
FINE = "\ndef test_fine(): ...\n"
HALF_TEST = "from calc import half\n\ndef test_half():\n    assert half(4) == 2\n"
GUMSHOE = {"gumshoe.py": HALF, "test_it.py": HALF_TEST.replace("calc", "gumshoe") + FINE}
HALVING = {"calc.py": HALF, "test_calc.py": HALF_TEST + FINE}
SCALE = {
    "shop.py": "def scale(n, by=2):\n    return n * by\n",
    "test_shop.py": """\
import inspect, shop
def test_scale():
    assert shop.scale(3) == 6
def test_signature():
    assert inspect.signature(shop.scale).parameters["by"].default == 2
def test_other():
    assert shop.scale(3, 5) == 15
""",
}
CACHE = {
    "cache.py": """\
import random
LIMIT = 2
def keep(keys):
    return keys if len(keys) <= LIMIT else [random.choice(keys)]
""",
    "test_cache.py": """\
import cache
def test_all_fit():
    kept = len(cache.keep([1, 2]))
    assert kept == 2
def test_one_fits():
    assert cache.keep([1]) == [1]
""",
}


@pytest.mark.parametrize(
    ("files", "old", "new", "status", "failing"),
    [
        # A test that fails with the bug draws random numbers then: in place, and where the suite is imported again.
        (CACHE, "<= LIMIT", "< LIMIT", "flaky", ()),
        (CACHE, "LIMIT = 2", "LIMIT = 1", "flaky", ()),
        # A test that only looks at the default fails, too.
        (SCALE, "by=2", "by=3", "killed", ("scale", "signature")),
        ({"calc.py": HALF, "test_calc.py": HALF_TEST}, "n // 2", "n", "all_fail", ()),
        # pytest loads a conftest before the fork, and the project with it: the judge has to notice.
        ({**HALVING, "conftest.py": "import calc"}, "// 2", "// 3", "killed", ("half",)),
        # The project's own module of this name is meant.
        (GUMSHOE, "// 2", "// 3", "killed", ("half",)),
    ],
)
def test_a_bug_of_a_small_project_gets_its_status(
    files: dict[str, str], old: str, new: str, status: str, failing: tuple[str, ...], tmp_path: Path
) -> None:
    path, clean = next(iter(files.items()))
    with opened(write_files(tmp_path, files)) as judge:
        (found,) = judge.judge([variant(old, new, path=path, clean=clean)])
    assert found.status == status
    assert tuple(name.rpartition("test_")[2] for name in found.failures or ()) == failing


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ("def test_no():\n    assert 0\n", "test_x.py::test_no fails without any bug: fix the project first"),
        ("import nothing_like_it\n", "test_x.py cannot be collected by pytest"),
        ("import pytest\n@pytest.mark.skip\ndef test_no(): ...\n", "project calc has no passing tests"),
        ("import os\ndef test_no():\n    os._exit(0)\n", r"its test run ended without a result \(crashed\)"),
        (
            "import os, pathlib\nMARK = pathlib.Path(os.environ['HOME'], 'ran')\n"
            "@__import__('pytest').mark.skipif(MARK.exists(), reason='x')\ndef test_once():\n    MARK.touch()\n",
            "differ: make it deterministic",
        ),
        (
            "import os, pathlib\nMARK = pathlib.Path(os.environ['HOME'], 'ran')\n"
            "def test_once():\n    MARK.exists() and os._exit(0)\n    MARK.touch()\n",
            r"its test run ended without a result \(crashed\)",
        ),
    ],
)
def test_a_project_that_is_not_fit_is_refused(tests: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(tests)
    with opened(tmp_path) as judge, pytest.raises(TaskError, match=message):
        judge.judge([])


def test_a_project_whose_pytest_does_not_start_is_refused(tmp_path: Path) -> None:
    files = {"test_x.py": FINE, "pytest.ini": "[pytest]\naddopts = --no-such-option\n"}
    message = r"project calc: pytest does not start there: .*no-such-option"
    with opened(write_files(tmp_path, files)) as judge, pytest.raises(TaskError, match=message):
        judge.judge([])


DRAWS = {
    "test_draws": "random.random() < 1",
    "test_draws_a_mask": "os.urandom(4)",
    "test_draws_a_secret": "secrets.token_hex()",
    "test_draws_a_uuid": "uuid.uuid4()",
    "test_draws_the_same": "random.seed(1) is None and random.random() < 1",
}
TESTS_THAT_DRAW = "".join(f"def {name}():\n    assert {drawn}\n" for name, drawn in DRAWS.items())
TIMER = {
    "timer.py": """\
import time
class Timer:
    clock = time.monotonic
    def now(self, read=time.perf_counter):
        return self.clock() + read()
""",
    "tests/measured.py": """\
from time import perf_counter
def seconds(work):
    began = perf_counter()
    work()
    return perf_counter() - began
""",
    "tests/test_timer.py": """\
import copy, pickle, time
import timer
from measured import seconds
def test_now():
    assert timer.Timer().now() > 0
def test_the_clock_is_that_of_python():
    assert pickle.loads(pickle.dumps(time.monotonic)) is time.monotonic
    assert copy.deepcopy(timer.Timer.clock) is time.monotonic
def test_quick():
    assert seconds(timer.Timer) < 5
""",
}


@pytest.mark.parametrize(
    ("files", "count", "unfit", "why"),
    [
        (
            {"test_x.py": f"import os, random, secrets, uuid\n{TESTS_THAT_DRAW}"},
            5,
            [f"test_x.py::{name}" for name in list(DRAWS)[:-1]],
            "uses random numbers without a seed",
        ),
        (TIMER, 3, ["tests/test_timer.py::test_quick"], "measures time"),
    ],
)
def test_tests_must_be_repeatable_only_where_the_suite_says_so(
    files: dict[str, str], count: int, unfit: list[str], why: str, tmp_path: Path
) -> None:
    write_files(tmp_path, files)
    with opened(tmp_path, Suite(repeatable=True)) as judge, pytest.raises(UnfitTests) as refused:
        judge.judge([])
    assert (list(refused.value.tests), refused.value.why) == (unfit, why)
    with opened(tmp_path) as judge:
        judge.judge([])
        assert len(judge.passing) == count
