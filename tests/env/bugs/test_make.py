"""Making task sets, in real sandboxes."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from gumshoe.cli import main
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.judging import VerdictStatus
from gumshoe.env.bugs.make import SynthResult, make_bugs, write_result
from gumshoe.env.commands.bugs import REASONS
from gumshoe.env.diff import apply_patch, gold_lines, make_patch
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_tasks
from gumshoe.errors import ConfigError, TaskError
from gumshoe.records import Oracle, Task
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

OMISSIONS = ("missing_branch", "missing_guard", "missing_handler", "missing_normalization")


def test_each_reason_to_drop_a_candidate_has_words() -> None:
    assert REASONS.keys() == {*get_args(VerdictStatus), "duplicate", "memory"} - {"killed"}


@pytest.fixture(scope="module")
def casebook() -> SynthResult:
    return make_bugs(SynthConfig(per_project=13, sandbox=CHEAPEST, workers=2))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "calc"
    (folder / "tests").mkdir(parents=True)
    (folder / "calc.py").write_text(
        "def add(a, b):\n    return a + b\n\n\ndef least(a, b):\n    if a < b:\n        return a\n    return b\n"
    )
    (folder / "tests" / "test_calc.py").write_text(
        "from calc import add, least\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
        "def test_least():\n    assert least(1, 2) == 1\n    assert least(2, 1) == 1\n"
    )
    return folder


def test_the_casebook_gives_200_verified_bugs_and_more(casebook: SynthResult) -> None:
    assert len(casebook.tasks) >= 200
    assert len({task.id for task, _ in casebook.tasks}) == len(casebook.tasks)
    assert len({task.tags["operator"] for task, _ in casebook.tasks}) >= 15
    for task, oracle in casebook.tasks:
        assert oracle.fail_to_pass
        assert oracle.pass_to_pass
        assert not set(oracle.fail_to_pass) & set(oracle.pass_to_pass)
        assert task.tags["difficulty"] in {"same_function", "other_function", "other_file"}


def test_when_its_time_is_over_a_project_has_the_bugs_of_one_batch(project: Path) -> None:
    short = SynthConfig(projects=(str(project),), per_project=50, batch=2, project_s=0.001, workers=1, sandbox=CHEAPEST)
    made = make_bugs(short)
    assert 0 < len(made.tasks) == made.counts["calc"]["kept"] <= 2 == made.counts["calc"].total()


def test_every_bug_is_told_from_its_failure(casebook: SynthResult) -> None:
    for task, oracle in casebook.tasks:
        assert task.problem_statement.startswith(f"{oracle.fail_to_pass[0]} fails:")
        assert task.tags["operator"] not in task.problem_statement
        assert len(task.problem_statement) < 1500


def test_no_two_bugs_fail_alike_on_the_same_lines(casebook: SynthResult) -> None:
    keys = Counter(
        (task.tags["project"], str(changed_lines(task, oracle)), frozenset(oracle.fail_to_pass))
        for task, oracle in casebook.tasks
    )
    assert keys.most_common(1)[0][1] == 1


def changed_lines(task: Task, oracle: Oracle) -> dict[str, set[int]]:
    """The lines of the clean project that the bug changed."""
    buggy = {path: text for path, text in task.workspace.overlay.items() if text is not None}
    clean = {path: text or "" for path, text in apply_patch(buggy, oracle.gold_patch).items()}
    return gold_lines(make_patch({path: (clean[path].encode(), buggy[path].encode()) for path in clean}))


def test_projects_and_functions_are_held_out(casebook: SynthResult) -> None:
    splits: dict[str, set[str]] = {}
    for task, _ in casebook.tasks:
        splits.setdefault(task.tags["project"], set()).add(task.tags["split"])
    held = [project for project, found in splits.items() if found == {"heldout_projects"}]
    assert len(held) == round(len(splits) / 4)
    assert all(found <= {"train", "heldout_bugs"} for project, found in splits.items() if project not in held)
    counts = Counter(task.tags["split"] for task, _ in casebook.tasks)
    assert counts["train"] > counts["heldout_bugs"] > 0


def test_any_first_part_of_the_set_is_balanced(casebook: SynthResult) -> None:
    projects = len(casebook.counts)
    assert len({task.tags["project"] for task, _ in casebook.tasks[:projects]}) == projects


@pytest.fixture(scope="module")
def written(casebook: SynthResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On disk: the bugs of three projects, and one omission of each kind, which come first."""
    folder = tmp_path_factory.mktemp("written") / "set"
    omissions = {task.tags["operator"]: (task, oracle) for task, oracle in casebook.tasks}
    few = {task.tags["project"] for task, _ in casebook.tasks[:3]}
    tasks = [omissions[kind] for kind in OMISSIONS]
    tasks += [pair for pair in casebook.tasks if pair[0].tags["project"] in few and pair not in tasks]
    return write_result(SynthResult(tasks, {}), SynthConfig(out=str(folder), sandbox=CHEAPEST, workers=2))


def test_the_gold_patch_gives_the_clean_file_back(written: Path) -> None:
    for task, oracle in load_tasks(str(written)):
        buggy = {path: text for path, text in task.workspace.overlay.items() if text is not None}
        for path, text in apply_patch(buggy, oracle.gold_patch).items():
            assert text == Path(str(task.workspace.path), path).read_text()


def test_the_rows_are_read_by_the_loader_of_swe_smith(written: Path) -> None:
    by_rows = load_tasks(f"swesmith:{written / 'rows.jsonl'}")
    by_set = load_tasks(str(written))
    for (row, told), (task, oracle) in zip(by_rows, by_set, strict=True):
        assert row.id == task.id.replace("/", ".")
        assert row.workspace == task.workspace
        assert (row.problem_statement, row.regime) == (task.problem_statement, "debug")
        assert row.tags["operator"] == task.tags["operator"]
        assert (told.gold_patch, told.fail_to_pass) == (oracle.gold_patch, oracle.fail_to_pass)
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


def test_what_was_dropped_is_counted(project: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    config = SynthConfig(projects=(str(project),), per_project=100, sandbox=CHEAPEST)
    result = make_bugs(config, lambda name, judged, kept: seen.append((name, judged, kept)))
    counts = result.counts["calc"]
    assert counts["kept"] == len(result.tasks) > 3
    assert counts["duplicate"] > 0
    assert seen[-1] == ("calc", counts.total(), counts["kept"])
    assert {task.tags["split"] for task, _ in result.tasks} == {"train", "heldout_bugs"}


def test_a_limit_on_candidates_is_kept(project: Path) -> None:
    config = SynthConfig(projects=(str(project),), per_project=100, candidates_per_project=4, sandbox=CHEAPEST)
    assert make_bugs(config).counts["calc"].total() == 4


def test_the_command_makes_a_set_that_can_be_moved_and_its_options_override_the_config(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"projects": ["casebook"], "out": "nowhere", "per_project": 9, "sandbox": CHEAPEST.model_dump(), "seed": 3}
    (tmp_path / "synth.json").write_text(json.dumps(config))
    out = tmp_path / "set"
    options = ["--projects", str(project), "--out", str(out), "--per-project", "2", "--seed", "1", "--workers", "1"]
    operators = ["-p", "operators=[arithmetic, comparison]"]
    assert main(["synth", str(tmp_path / "synth.json"), *operators, *options]) == 0
    printed = capsys.readouterr().out
    assert "candidates tried, 2 kept" in printed
    assert "2 tasks in" in printed
    (project / "calc.py").unlink()
    moved = out.rename(tmp_path / "moved")
    tasks = [task for task, _ in load_tasks(str(moved))]
    assert len(tasks) == 2
    assert {task.tags["operator"] for task in tasks} <= {"arithmetic", "comparison"}
    for task in tasks:
        assert Path(str(task.workspace.path), "calc.py").is_file()
        assert Path(str(task.workspace.path)).is_relative_to(moved)


def test_projects_that_cannot_be_used_are_refused(project: Path, tmp_path: Path) -> None:
    def refused(error: type[Exception], message: str, *projects: str, **options: object) -> None:
        with pytest.raises(error, match=message):
            make_bugs(SynthConfig.model_validate({"projects": projects, "sandbox": CHEAPEST, **options}))

    twin = tmp_path / "elsewhere" / "calc"
    twin.mkdir(parents=True)
    refused(TaskError, r"project calc: .*elsewhere/calc has no tests", str(twin))
    (twin / "test_x.py").write_text("def test_x(): ...\n")
    refused(TaskError, "two projects are called calc", str(project), str(twin))
    refused(TaskError, "project calc: every Python file is excluded", str(twin))
    refused(ConfigError, "no operator 'magic'", str(project), operators=["magic"])
    (twin / "bad.py").write_text("def (:\n")
    refused(TaskError, "project calc: bad.py:1 is not Python", str(twin), exclude=["test_x.py"])
    (twin / "bad.py").write_bytes(b"\xff")
    refused(TaskError, "project calc: bad.py cannot be read", str(twin))
