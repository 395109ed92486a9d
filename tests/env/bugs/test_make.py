"""Making task sets, in real sandboxes."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumshoe.cache import JsonlCache
from gumshoe.cli import main
from gumshoe.env.bugs.candidates import Candidate
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.judging import CandidateVerdict, FailedTest, VerdictStatus, known_or_judged
from gumshoe.env.bugs.make import SynthResult, make_bugs, write_result
from gumshoe.env.bugs.packages.check import difficulty_of
from gumshoe.env.commands.bugs import REASONS
from gumshoe.env.config import SandboxConfig
from gumshoe.env.diff import apply_patch, gold_lines, make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_tasks
from gumshoe.errors import ConfigError, DatasetError, TaskError
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import CHEAPEST
from support.small_projects import DOCTESTED_CART

pytestmark = pytest.mark.needs("bubblewrap")

TESTS = """\
from importlib.metadata import version

from shop.cart import cheapest, total

def expect(seen, wanted):
    assert seen == wanted

def test_total():
    expect(total([1, 2], 1), 2)

def test_cheapest():
    expect(cheapest([2, 1]), 1)

def test_version():
    assert version("shop") == "2.5"
"""
FILES = {
    "setup.cfg": "[metadata]\nname = shop\n[tool:pytest]\npython_files = test.py\naddopts = --doctest-modules\n",
    "shop/__init__.py": "",
    "shop/cart.py": DOCTESTED_CART,
    "shop.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: shop\nVersion: 2.5\n",
    "shop.egg-info/top_level.txt": "shop\n",
    "test.py": TESTS,
}
OMISSIONS = ("missing_branch", "missing_guard", "missing_handler", "missing_normalization")


def test_each_reason_to_drop_a_candidate_has_words() -> None:
    assert REASONS.keys() == {*get_args(VerdictStatus), "duplicate", "memory"} - {"killed"}


@pytest.fixture(scope="module")
def casebook() -> SynthResult:
    return make_bugs(SynthConfig(per_project=13, sandbox=CHEAPEST, workers=2))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_files(tmp_path / "shop", FILES)


def test_the_casebook_gives_200_verified_bugs_and_more(casebook: SynthResult) -> None:
    assert len(casebook.tasks) >= 200
    assert len({task.id for task, _ in casebook.tasks}) == len(casebook.tasks)
    assert len({task.tags["operator"] for task, _ in casebook.tasks}) >= 15
    for task, oracle in casebook.tasks:
        assert oracle.fail_to_pass
        assert oracle.pass_to_pass
        assert not set(oracle.fail_to_pass) & set(oracle.pass_to_pass)
        assert task.tags["difficulty"] in {"same_function", "other_function", "other_file"}
        assert task.problem_statement.startswith(f"{oracle.fail_to_pass[0]} fails:")
        assert task.tags["operator"] not in task.problem_statement
        assert len(task.problem_statement) < 1500
    first = [task.tags["project"] for task, _ in casebook.tasks[: len(casebook.counts)]]
    assert {*first} == casebook.counts.keys(), "any first part of the set is balanced"


def test_no_two_bugs_fail_alike_on_the_same_lines(casebook: SynthResult) -> None:
    seen: set[tuple[object, ...]] = set()
    for task, oracle in casebook.tasks:
        buggy = {path: text for path, text in task.workspace.overlay.items() if text is not None}
        clean = {path: text or "" for path, text in apply_patch(buggy, oracle.gold_patch).items()}
        bug = make_patch({path: (clean[path].encode(), buggy[path].encode()) for path in clean})
        seen.add((task.tags["project"], str(gold_lines(bug)), oracle.fail_to_pass))
    assert len(seen) == len(casebook.tasks)


def test_projects_and_functions_are_held_out(casebook: SynthResult) -> None:
    splits: dict[str, set[str]] = {}
    for task, _ in casebook.tasks:
        splits.setdefault(task.tags["project"], set()).add(task.tags["split"])
    held = [project for project, found in splits.items() if found == {"heldout_projects"}]
    assert len(held) == round(len(splits) / 4)
    assert all(found <= {"train", "heldout_bugs"} for project, found in splits.items() if project not in held)
    counts = Counter(task.tags["split"] for task, _ in casebook.tasks)
    assert counts["train"] > counts["heldout_bugs"] > 0


@pytest.fixture(scope="module")
def written(casebook: SynthResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On disk: the bugs of three projects, and one omission of each kind, which come first."""
    folder = tmp_path_factory.mktemp("written") / "set"
    omissions = {task.tags["operator"]: (task, oracle) for task, oracle in casebook.tasks}
    few = {task.tags["project"] for task, _ in casebook.tasks[:3]}
    tasks = [omissions[kind] for kind in OMISSIONS]
    tasks += [pair for pair in casebook.tasks if pair[0].tags["project"] in few and pair not in tasks]
    return write_result(SynthResult(tasks, {}), SynthConfig(out=str(folder), sandbox=CHEAPEST, workers=2))


def test_the_rows_are_read_by_the_loader_of_swe_smith(written: Path) -> None:
    by_rows = load_tasks(f"swesmith:{written / 'rows.jsonl'}")
    for (row, told), (task, oracle) in zip(by_rows, load_tasks(str(written)), strict=True):
        assert row.id == task.id.replace("/", ".")
        assert row.workspace == task.workspace
        assert (row.problem_statement, row.regime) == (task.problem_statement, "debug")
        assert row.tags["operator"] == task.tags["operator"]
        assert (told.gold_patch, told.fail_to_pass) == (oracle.gold_patch, oracle.fail_to_pass)
        buggy = {path: text for path, text in task.workspace.overlay.items() if text is not None}
        clean = {path: Path(str(task.workspace.path), path).read_text() for path in buggy}
        assert apply_patch(buggy, oracle.gold_patch) == clean
    assert [result.problems for result in check_tasks(by_rows[:1], CHEAPEST)] == [()]
    with pytest.raises(TaskError, match="only in the regime debug"):
        load_tasks("swesmith", path=written / "rows.jsonl", regime="issue")


def test_made_bugs_pass_the_check_which_finds_nothing_new(written: Path) -> None:
    sample = load_tasks(str(written), limit=6)
    assert [task.tags["operator"] for task, _ in sample][: len(OMISSIONS)] == list(OMISSIONS)
    checked = list(check_tasks(sample, CHEAPEST, workers=2))
    assert [result.problems for result in checked] == [()] * 6
    assert [result.falsifiable for result in checked] == [oracle.falsifiable for _, oracle in sample]
    assert all(any(oracle.falsifiable.values()) for _, oracle in sample if oracle.falsifiable is not None)


def test_equal_seeds_give_equal_bytes_whatever_the_workers(project: Path, tmp_path: Path) -> None:
    twin = Path(shutil.copytree(project, tmp_path / "twin"))
    config = SynthConfig(projects=(str(project), str(twin)), per_project=3, sandbox=CHEAPEST)

    def written(name: str, result: SynthResult) -> bytes:
        folder = write_result(result, config.model_copy(update={"out": str(tmp_path / name)}))
        return b"".join((folder / f"{part}.jsonl").read_bytes() for part in ("tasks", "oracles", "rows"))

    first = make_bugs(config)
    again = make_bugs(config.model_copy(update={"workers": 3, "batch": 2}))
    assert written("a", first) == written("b", again)
    other = make_bugs(config.model_copy(update={"projects": (str(project),), "seed": 1}))
    bugs = [task.workspace.overlay for task, _ in first.tasks]
    assert not all(task.workspace.overlay in bugs for task, _ in other.tasks)


class Stopped(Exception):
    pass


def stop_after_one_batch(project: str, judged: int, kept: int) -> None:
    raise Stopped


def test_what_was_judged_before_a_stop_is_not_judged_again(project: Path, tmp_path: Path) -> None:
    config = SynthConfig(projects=(str(project),), per_project=4, batch=2, workers=1, sandbox=CHEAPEST)
    path = tmp_path / "verdicts.jsonl"
    with pytest.raises(Stopped):
        make_bugs(config, stop_after_one_batch, journal=JsonlCache(path))
    before = path.read_text()
    assert len(before.splitlines()) == 2
    path.write_text(before + '{"key": "shop:')  # as a process that is killed leaves it

    whole = make_bugs(config, journal=JsonlCache(path))
    after = path.read_text()
    assert after.startswith(before)
    keys = [json.loads(line)["key"] for line in after.splitlines()]
    assert len(set(keys)) == len(keys)

    # Where every verdict is known, no sandbox is opened: this one is refused.
    nowhere = config.model_copy(update={"sandbox": SandboxConfig(kind="local")})
    assert make_bugs(nowhere, journal=JsonlCache(path)) == whole == make_bugs(config)
    assert path.read_text() == after

    path.write_text('{"no": "key"}\n')
    with pytest.raises(DatasetError, match=r"verdicts\.jsonl line 1 has no key: remove the file"):
        JsonlCache(path)


texts = st.text(max_size=20)
failures = st.builds(FailedTest, texts, texts, st.lists(st.tuples(texts, st.integers(1, 99), texts)).map(tuple))
statuses = st.sampled_from(get_args(VerdictStatus))
verdicts = st.builds(
    CandidateVerdict, statuses, st.lists(texts).map(tuple), st.none() | st.dictionaries(texts, failures)
)


@settings(max_examples=50)
@given(first=verdicts, second=verdicts)
def test_verdicts_come_back_as_they_were(
    first: CandidateVerdict, second: CandidateVerdict, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("journal") / "verdicts.jsonl"
    one, two = (Candidate("a.py", "swap", "f", text, (1,)) for text in ("1", "2"))
    assert known_or_judged(JsonlCache(path), "p", [two], lambda batch: [second]) == [second]
    assert known_or_judged(JsonlCache(path), "p", [one, two], lambda batch: [first] * len(batch)) == [first, second]
    assert known_or_judged(JsonlCache(path), "p", [one, two], lambda batch: []) == [first, second]
    assert known_or_judged(JsonlCache(path), "other", [one], lambda batch: [second]) == [second]


def test_what_was_dropped_is_counted_and_limits_are_kept(project: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    config = SynthConfig(projects=(str(project),), per_project=100, batch=2, workers=1, sandbox=CHEAPEST)
    whole = make_bugs(
        config.model_copy(update={"batch": 40}), lambda name, judged, kept: seen.append((name, judged, kept))
    )
    counts = whole.counts["shop"]
    assert counts["kept"] == len(whole.tasks) > 3
    assert counts["duplicate"] > 0
    assert seen[-1] == ("shop", counts.total(), counts["kept"])
    few = make_bugs(config.model_copy(update={"candidates_per_project": 3}))
    assert few.counts["shop"].total() == 3
    # When its time is over, a project has the bugs of one batch.
    short = make_bugs(config.model_copy(update={"project_s": 0.001}))
    assert 0 < len(short.tasks) == short.counts["shop"]["kept"] <= 2 == short.counts["shop"].total()


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A set that the command made of a project as real ones are laid out; both have been moved since."""
    root = tmp_path_factory.mktemp("shipped")
    write_files(root / "shop-2.5", FILES)
    config = {"projects": ["casebook"], "out": "nowhere", "per_project": 9, "sandbox": {"kind": "bubblewrap"}}
    (root / "synth.json").write_text(json.dumps(config))
    options = ["--projects", str(root / "shop-2.5"), "--out", str(root / "set"), "--per-project", "4", "--seed", "0"]
    operators = ["-p", "operators=[arithmetic, comparison, inverted_condition]", "--workers", "1"]
    assert main(["synth", str(root / "synth.json"), *options, *operators]) == 0
    shutil.rmtree(root / "shop-2.5")
    return (root / "set").rename(root / "moved")


def test_the_set_of_the_command_has_what_its_tests_need_and_passes_its_check(
    shipped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = load_tasks(str(shipped))
    assert {task.tags["operator"] for task, _ in pairs} <= {"arithmetic", "comparison", "inverted_condition"}
    assert list(shipped.rglob("shop.egg-info/PKG-INFO"))
    assert all("test.py::test_version" in oracle.pass_to_pass for _, oracle in pairs)
    assert main(["tasks", "check", str(shipped), "--sandbox", "bubblewrap"]) == 0
    assert "4 of 4 tasks are proven" in capsys.readouterr().out


def test_a_module_with_doctests_is_no_test_file_and_test_py_is_one(shipped: Path) -> None:
    pairs = load_tasks(str(shipped))
    assert {path for task, _ in pairs for path in task.workspace.overlay} == {"shop/cart.py"}
    assert any(test.startswith("shop/cart.py::") for _, oracle in pairs for test in oracle.fail_to_pass)
    task, oracle = next(pair for pair in pairs if "test.py::test_total" in pair[1].fail_to_pass)
    found = difficulty_of(task, oracle, CHEAPEST)
    assert found["suspect"] in {"first", "tied"}, "the helper in test.py, which fails, is no suspect"


def test_projects_that_cannot_be_used_are_refused(project: Path, tmp_path: Path) -> None:
    def refused(error: type[Exception], message: str, *projects: str, **options: object) -> None:
        with pytest.raises(error, match=message):
            make_bugs(SynthConfig.model_validate({"projects": projects, "sandbox": CHEAPEST, **options}))

    twin = tmp_path / "elsewhere" / "shop"
    twin.mkdir(parents=True)
    refused(TaskError, r"project shop: .*elsewhere/shop has no tests", str(twin))
    (twin / "test_x.py").write_text("def test_x(): ...\n")
    refused(TaskError, "two projects are called shop", str(project), str(twin))
    refused(TaskError, "project shop: every Python file is excluded", str(twin))
    refused(ConfigError, "unknown operator 'magic'", str(project), operators=["magic"])
    (twin / "bad.py").write_text("def (:\n")
    refused(TaskError, "project shop: bad.py:1 is not Python", str(twin), exclude=["test_x.py"])
    (twin / "bad.py").write_bytes(b"\xff")
    refused(TaskError, "project shop: bad.py cannot be read", str(twin))
