"""Judging candidates in a real sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from gumshoe.env.bugs.candidates import Candidate
from gumshoe.env.bugs.judging import CandidateVerdict, ProjectJudge, UnfitTests
from gumshoe.env.bugs.projects import Project, Suite
from gumshoe.errors import SandboxClosed, TaskError
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
import random

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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calc")
    (folder / "calc").mkdir()
    (folder / "calc" / "__init__.py").write_text("")
    (folder / "calc" / "core.py").write_text(CLEAN)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_core.py").write_text(TESTS)
    return folder


def opened(project: Path, suite: Suite | None = None) -> contextlib.closing[ProjectJudge]:
    return contextlib.closing(ProjectJudge(Project("calc", project, "", suite or Suite()), CHEAPEST))


@pytest.fixture(scope="module")
def judge(project: Path) -> Iterator[ProjectJudge]:
    with opened(project) as made:
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


def test_the_baseline_holds_the_passing_tests(judge: ProjectJudge) -> None:
    judge.judge([])
    names = ("test_double", "test_half", "test_zero", "test_expected")
    assert judge.passing == tuple(f"tests/test_core.py::{name}" for name in names)


def test_each_change_gets_its_status(verdicts: dict[str, CandidateVerdict]) -> None:
    assert {new: verdicts[new].status for _, new in STATUSES} == {new: status for (_, new), status in STATUSES.items()}


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
    assert raised["tests/test_core.py::test_half"].frames[-1] == ("calc/core.py", 13, "half")


def test_a_bug_that_makes_a_test_draw_random_numbers_is_flaky(tmp_path: Path) -> None:
    clean = (
        "import random\n\nLIMIT = 2\n\ndef keep(keys):\n"
        "    return keys if len(keys) <= LIMIT else [random.choice(keys)]\n"
    )
    (tmp_path / "cache.py").write_text(clean)
    (tmp_path / "test_cache.py").write_text(
        "import cache\n\ndef test_all_fit():\n    kept = len(cache.keep([1, 2]))\n    assert kept == 2\n\n"
        "def test_one_fits():\n    assert cache.keep([1]) == [1]\n"
    )
    changes = [("<= LIMIT", "< LIMIT"), ("LIMIT = 2", "LIMIT = 1")]
    with opened(tmp_path) as judge:
        found = judge.judge([variant(old, new, path="cache.py", clean=clean) for old, new in changes])
    assert [each.status for each in found] == ["flaky", "flaky"]


def test_where_every_test_fails_there_is_nothing_to_learn_from(project: Path) -> None:
    (project / "tests" / "test_core.py").write_text(
        "from calc.core import half\n\ndef test_half():\n    assert half(4) == 2\n"
    )
    try:
        with opened(project) as judge:
            (found,) = judge.judge([variant("n // 2", "n")])
        assert found.status == "all_fail"
    finally:
        (project / "tests" / "test_core.py").write_text(TESTS)


def test_a_variant_leaves_nothing_behind_for_the_next(
    judge: ProjectJudge, verdicts: dict[str, CandidateVerdict]
) -> None:
    """Not its file, not its byte code, not what its tests wrote: the verdict is the same alone and in company."""
    assert judge.judge([variant("n // 2", "n // 3")]) == [verdicts["n // 3"]]
    assert judge.judge([]) == []


def test_a_conftest_that_imports_the_project_does_not_hide_the_bug(project: Path) -> None:
    """Pytest loads it before the fork; the judge has to notice."""
    conftest = project / "conftest.py"
    conftest.write_text("import calc.core\n")
    try:
        with opened(project) as judge:
            found = judge.judge([variant("n // 2", "n // 3"), variant("n > 0", "n >= 1")])
        assert [each.status for each in found] == ["killed", "survived"]
    finally:
        conftest.unlink()


def test_a_project_that_imports_gumshoe_gets_its_own(tmp_path: Path) -> None:
    (tmp_path / "gumshoe.py").write_text("def one():\n    return 1\n")
    (tmp_path / "test_it.py").write_text(
        "import gumshoe\n\ndef test_one():\n    assert gumshoe.one() == 1\n\ndef test_two(): ...\n"
    )
    text = "def one():\n    return 2\n"
    with opened(tmp_path) as judge:
        (answer,) = judge.judge([Candidate("gumshoe.py", "x", "one", text, (2,))])
    assert answer.status == "killed"


def test_a_closed_judge_says_so(project: Path) -> None:
    judge = ProjectJudge(Project("calc", project, ""), CHEAPEST)
    judge.close()
    judge.close()
    with pytest.raises(SandboxClosed):
        judge.judge([variant("n // 2", "n")])


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        (
            "def test_no():\n    assert 0\n",
            "project calc: test_x.py::test_no fails without any bug: fix the project first",
        ),
        ("import nothing_like_it\n", "project calc: test_x.py cannot be collected by pytest"),
        ("import pytest\n\n@pytest.mark.skip\ndef test_no(): ...\n", "project calc has no passing tests"),
        ("import os\n\ndef test_no():\n    os._exit(0)\n", r"its test run ended without a result \(crashed\)"),
        (
            "import os, pathlib\nMARK = pathlib.Path(os.environ['HOME'], 'ran')\n\n"
            "@__import__('pytest').mark.skipif(MARK.exists(), reason='x')\ndef test_once():\n    MARK.touch()\n",
            "differ: make it deterministic",
        ),
    ],
)
def test_a_project_that_is_not_fit_is_refused(tests: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(tests)
    with opened(tmp_path) as judge, pytest.raises(TaskError, match=message):
        judge.judge([])


def test_a_changed_default_breaks_tests_that_only_look_at_it(tmp_path: Path) -> None:
    clean = "def scale(n, by=2):\n    return n * by\n"
    (tmp_path / "shop.py").write_text(clean)
    (tmp_path / "test_shop.py").write_text(
        "import inspect\n\nimport shop\n\ndef test_scale():\n    assert shop.scale(3) == 6\n\n"
        "def test_signature():\n    assert inspect.signature(shop.scale).parameters['by'].default == 2\n\n"
        "def test_other():\n    assert shop.scale(3, 5) == 15\n"
    )
    with opened(tmp_path) as judge:
        (found,) = judge.judge([variant("by=2", "by=3", path="shop.py", clean=clean)])
    assert sorted(found.failures or ()) == ["test_shop.py::test_scale", "test_shop.py::test_signature"]
    assert found.passing == ("test_shop.py::test_other",)


def test_tests_must_have_seeds_only_where_the_suite_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "import os\nimport random\nimport secrets\nimport uuid\n\ndef test_draws():\n    assert random.random() < 1\n\n"
        "def test_draws_the_same():\n    random.seed(1)\n    assert random.random() < 1\n\n"
        "def test_draws_a_mask():\n    assert os.urandom(4)\n\n"
        "def test_draws_a_secret():\n    assert secrets.token_hex()\n\n"
        "def test_draws_a_uuid():\n    assert uuid.uuid4()\n"
    )
    unseeded = tuple(f"test_x.py::test_draws{what}" for what in ("", "_a_mask", "_a_secret", "_a_uuid"))
    with opened(tmp_path, Suite(repeatable=True)) as judge:
        with pytest.raises(UnfitTests, match="test_draws uses random numbers without a seed") as refused:
            judge.judge([])
        assert refused.value.tests == unseeded
    with opened(tmp_path) as judge:
        judge.judge([])
        assert sorted(judge.passing) == sorted([*unseeded, "test_x.py::test_draws_the_same"])


def test_tests_that_measure_time_are_refused_only_where_the_suite_says_so(tmp_path: Path) -> None:
    (tmp_path / "timer.py").write_text(
        "import time\n\nclass Timer:\n    clock = time.monotonic\n\n    def now(self, read=time.perf_counter):\n"
        "        return self.clock() + read()\n"
    )
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "measured.py").write_text(
        "from time import perf_counter\n\ndef seconds(work):\n    began = perf_counter()\n    work()\n"
        "    return perf_counter() - began\n"
    )
    (tmp_path / "tests" / "test_timer.py").write_text(
        "import copy\nimport pickle\nimport time\n\nimport timer\nfrom measured import seconds\n\n"
        "def test_now():\n    assert timer.Timer().now() > 0\n\n"
        "def test_the_clock_is_that_of_python():\n"
        "    assert pickle.loads(pickle.dumps(time.monotonic)) is time.monotonic\n"
        "    assert copy.deepcopy(timer.Timer.clock) is time.monotonic\n\n"
        "def test_quick():\n    assert seconds(timer.Timer) < 5\n"
    )
    with opened(tmp_path, Suite(repeatable=True)) as judge:
        with pytest.raises(UnfitTests, match="test_quick measures time") as refused:
            judge.judge([])
        assert refused.value.tests == ("tests/test_timer.py::test_quick",)
    with opened(tmp_path) as judge:
        judge.judge([])
        assert len(judge.passing) == 3


def test_a_project_whose_pytest_does_not_start_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("def test_x(): ...\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    message = r"project calc: pytest does not start there: .*no-such-option"
    with opened(tmp_path) as judge, pytest.raises(TaskError, match=message):
        judge.judge([])
