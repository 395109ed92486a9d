"""Packs that exist already: other explorers' answers, an earlier run's episodes, another arm's packs without probes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gumshoe.collect.config import TasksConfig
from gumshoe.collect.run.control import Control
from gumshoe.env.config import SandboxConfig
from gumshoe.env.git import Repositories
from gumshoe.errors import DatasetError, TaskError
from gumshoe.eval.arms.answers import AnswerPacks
from gumshoe.eval.arms.arm import CollectedPacks, EvalRun, Hooks
from gumshoe.eval.arms.build import make_arms
from gumshoe.eval.arms.packs import EarlierEpisodes, PacksWithoutProbes
from gumshoe.eval.config import AnswersConfig, ArmConfig, EvalConfig
from gumshoe.eval.results import make_results
from gumshoe.eval.score.buggy_code import BuggyCode, check_buggy_code
from gumshoe.eval.score.metrics import own_scores
from gumshoe.records import Check, Finding, Task, Trajectory, WhatIfProbe, WorkspaceSpec
from support.eval.made import SOURCE, check_part, make_oracle, make_pack, make_step, make_task, make_trajectory
from support.folder_tasks import git

TASK, OTHER = "shop__cart-17", "shop__cart-18"
NO_PULL = SandboxConfig(pull="never")


def run_on(tmp_path: Path, *tasks: Task, arm: ArmConfig, samples: int = 1, **config: Any) -> EvalRun:
    (tmp_path / "out").mkdir(exist_ok=True)
    wanted = TasksConfig(source="made", samples=samples)
    given = EvalConfig(out=str(tmp_path / "out"), tasks=wanted, arms=(arm,), sandbox=NO_PULL, **config)
    return EvalRun(given, tuple((task, make_oracle(task.id)) for task in tasks), Control())


# --- answers of other explorers -----------------------------------------------------------------------------------


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "cart.py").write_text(SOURCE)
    return make_task(TASK).model_copy(update={"workspace": WorkspaceSpec(path=str(tmp_path / "repo"))})


def answering(tmp_path: Path, kind: Any, *rows: dict[str, Any] | str) -> ArmConfig:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return ArmConfig(name="theirs", answers=AnswersConfig(path=str(path), format=kind))


def read(tmp_path: Path, task: Task, kind: Any, *rows: dict[str, Any] | str) -> CollectedPacks:
    arm = answering(tmp_path, kind, *rows)
    run = run_on(tmp_path, task, task.model_copy(update={"id": OTHER}), arm=arm)
    assert arm.answers is not None
    packs = AnswerPacks(arm.answers, run.config)
    check_part(packs, run.tasks)
    return packs.collect(run, Hooks())


def places(packs: CollectedPacks) -> list[tuple[str, int, int]]:
    pack = packs.packs[TASK, 0]
    assert pack is not None
    return [(place.path, place.start, place.end) for place in pack.locations]


def scores(packs: CollectedPacks, task: Task) -> dict[str, float | None]:
    return own_scores(packs.episodes[TASK, 0], make_oracle(TASK), BuggyCode([task]))


@pytest.mark.parametrize("wrap", [lambda items: {"locations": items}, json.dumps, lambda items: items])
def test_codescout_names_classes_and_functions(tmp_path: Path, task: Task, wrap: Any) -> None:
    items = [
        {"file": "cart.py", "class_name": "Cart", "function_name": "total"},
        {"file": "cart.py", "class_name": None, "function_name": "unknown"},
        {"file": "cart.py", "class_name": "Cart", "function_name": None},
        {"file": "other.py"},
        {"file": 3},
        "x",
    ]
    packs = read(tmp_path, task, "codescout", {"instance_id": TASK, "answer": wrap(items)})
    assert places(packs) == [("cart.py", 7, 12), ("cart.py", 1, 1), ("cart.py", 6, 16), ("other.py", 1, 1)]
    assert scores(packs, task)["function_acc@1"] == 1


def test_fastcontext_cites_lines(tmp_path: Path, task: Task) -> None:
    text = "<final_answer>a.py:9-9</final_answer> no:\n<final_answer>\n- `cart.py:8-11`\nb.py:4\nwhy b.py\nc.py:9-2\n"
    row = {"task_id": TASK, "answer": f"{text}</final_answer> d.py:1-2"}
    packs = read(tmp_path, task, "fastcontext", row)
    assert places(packs) == [("cart.py", 8, 11), ("b.py", 4, 4)]
    found = scores(packs, task)
    assert (found["line_recall"], found["line_precision"], found["function_acc@5"]) == (1, 2 / 5, 1)
    assert places(read(tmp_path, task, "fastcontext", {"task_id": TASK, "answer": "a.py:1-2"})) == []


def test_plain_places_and_a_task_without_an_answer(tmp_path: Path, task: Task) -> None:
    listed = ["other.py", "cart.py:8", "cart.py:8-11", "cart.py:Cart.size", {"path": "a.py", "start": 2, "end": 3}]
    row = {"task_id": TASK, "locations": listed, "hypothesis": "The tax is wrong.", "usage": {"prompt_tokens": 31}}
    packs = read(tmp_path, task, "places", row)
    cart = [("cart.py", 8, 8), ("cart.py", 8, 11), ("cart.py", 14, 16)]
    assert places(packs) == [("other.py", 1, 1), *cart, ("a.py", 2, 3)]
    pack = packs.packs[TASK, 0]
    assert pack is not None
    assert pack.hypothesis == "The tax is wrong."
    packs = read(tmp_path, task, "places", {"instance_id": OTHER, "locations": []})
    assert packs.episodes[TASK, 0].context_pack is None
    assert scores(packs, task)["file_acc@1"] == 0


@pytest.mark.parametrize(
    ("kind", "row", "said"),
    [
        ("places", {"locations": []}, r"line 1 is not an answer: it needs task_id and locations \(format places\)"),
        ("codescout", {"instance_id": TASK}, "line 1 is not an answer: it needs task_id and answer"),
        ("codescout", {"task_id": TASK, "answer": "{"}, f"the answer to {TASK} cannot be read: Expecting"),
        ("places", {"task_id": TASK, "locations": [3]}, f"the pack of {TASK} is invalid"),
        ("places", {"task_id": TASK, "locations": "cart.py"}, "locations is not a list"),
        ("places", {"task_id": TASK, "locations": ["a.py:9-"]}, "'a.py:9-' is not path, path:line, path:start-end or"),
        ("places", {"task_id": TASK, "locations": ["a.py:9-2"]}, "end 2 is before start 9"),
        ("places", "[]", "line 1"),
        ("places", {"instance_id": "x", "locations": []}, f"none of the tasks, such as {TASK}; it has x, for example"),
    ],
)
def test_bad_answers_are_one_clear_line(
    tmp_path: Path, task: Task, kind: Any, row: dict[str, Any] | str, said: str
) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        read(tmp_path, task, kind, row)
    assert "\n" not in str(caught.value)


@pytest.fixture
def imaged(tmp_path: Path, task: Task) -> Task:
    """The task in an image that nobody has; its files are in the first of two commits of repositories/shop/cart.git."""
    work = tmp_path / "repo"
    git(work, "init", "-q")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "base")
    base = git(work, "rev-parse", "HEAD")
    (work / "cart.py").write_text("later = 1\n")
    git(work, "commit", "-qam", "later")
    (tmp_path / "repositories" / "shop").mkdir(parents=True)
    git(tmp_path, "clone", "-q", "--bare", "repo", "repositories/shop/cart.git")
    tags = {"project": "shop/cart", "base_commit": base}
    return task.model_copy(update={"workspace": WorkspaceSpec(image="gumshoe.invalid/none"), "tags": tags})


LOCATED = {"instance_id": TASK, "locations": ["cart.py:Cart.total", "gone.py:f"]}


@pytest.mark.parametrize("is_finishing", [False, True])
def test_a_bare_repository_does_instead_of_an_image(tmp_path: Path, imaged: Task, is_finishing: bool) -> None:
    """Also if the evaluation is stopped: what was played is scored in full."""
    arm = answering(tmp_path, "places", LOCATED)
    run = run_on(tmp_path, imaged, arm=arm, repositories=str(tmp_path / "repositories"))
    if is_finishing:
        run.control.finish()
    arms = make_arms(run.config)
    run = replace(run, packs={"theirs": arms[0].packs.collect(run, Hooks())})
    assert places(run.packs["theirs"]) == [("cart.py", 7, 12), ("gone.py", 1, 1)]
    (result,) = make_results(arms, {}, run)["theirs"]
    assert (result.scores["function_acc@5"], result.scores["function_recall"]) == (1, 1)


@pytest.mark.parametrize("tags", [{}, {"base_commit": "0" * 40}, {"project": "../shop/cart"}])
def test_a_task_with_neither_repository_nor_image_is_refused(
    tmp_path: Path, imaged: Task, tags: dict[str, str]
) -> None:
    other = imaged.model_copy(update={"tags": {**imaged.tags, **tags} if tags else {}})
    repositories = Repositories(tmp_path / "repositories")
    with pytest.raises(TaskError, match=rf"{TASK}: its files cannot be read: .*; no repository in the folder"):
        check_buggy_code([other], NO_PULL, repositories)
    with pytest.raises(TaskError, match="the config names no folder of `repositories`"):
        read(tmp_path, imaged, "places", LOCATED)
    with pytest.raises(TaskError, match=r"no repository in .* has the commit"):
        repositories.read(other, ["cart.py"])


# --- episodes of an earlier run, and packs of another arm ---------------------------------------------------------


def write_run(tmp_path: Path, *episodes: Trajectory) -> tuple[Path, ArmConfig]:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "trajectories.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in episodes))
    return folder, ArmConfig(name="before", earlier=str(folder))


def test_an_earlier_run_gives_its_episodes_whole(tmp_path: Path) -> None:
    """The first on a task is its first sample; a task that the run lacks counts as given up."""
    first, second = make_task("first"), make_task("second")
    sure = make_trajectory([make_step(confidence=0.8)], make_pack(("cart.py", 9, 9)), task=first, name="a")
    again = make_trajectory([make_step()], task=first, name="b")
    folder, arm = write_run(tmp_path, sure, again, make_trajectory(task=make_task("other"), name="c"))
    source = EarlierEpisodes(folder)
    packs = source.collect(run_on(tmp_path, first, second, arm=arm, samples=2), Hooks())
    assert packs.episodes == {("first", 0): sure, ("first", 1): again}
    assert packs.packs == {("first", 0): sure.context_pack, ("first", 1): make_pack()}
    assert (packs.failed, source.policy) == (2, sure.policy)


def test_a_run_that_does_not_fit_is_one_clear_line(tmp_path: Path) -> None:
    task = make_task()
    with pytest.raises(DatasetError, match="is not a run folder"):
        check_part(EarlierEpisodes(tmp_path), [(task, make_oracle())])
    folder, _ = write_run(tmp_path, make_trajectory(task=task))
    for wanted, said in (
        (make_task("other"), "has no episode on any of the tasks"),
        (make_task(source="total = 0\n"), "task t has changed since that run"),
    ):
        with pytest.raises(DatasetError, match=said):
            check_part(EarlierEpisodes(folder), [(wanted, make_oracle())])
    (folder / "trajectories.jsonl").write_text("")
    with pytest.raises(DatasetError, match="has no finished episode"):
        check_part(EarlierEpisodes(folder), [(task, make_oracle())])


def test_packs_without_probes_keep_their_words(tmp_path: Path) -> None:
    task, blank = make_task(), make_task("blank")
    probe = WhatIfProbe(path="cart.py", line=9, do="del", effect="1 test now passes: test_size")
    helped = Finding(claim="it helps", step=0, quote="del", probe=probe, check=Check(status="confirmed", telling=True))
    pack = make_pack(("cart.py", 8, 11), hypothesis="Line 9.").model_copy(update={"findings": (helped,)})
    folder, arm = write_run(tmp_path, make_trajectory(pack=pack, task=task), make_trajectory(task=blank, name="b"))
    run = run_on(tmp_path, task, blank, arm=arm)
    run = replace(run, packs={"before": EarlierEpisodes(folder).collect(run, Hooks())})
    bare = PacksWithoutProbes("before").collect(run, Hooks())
    told = Finding(claim="it helps", step=0, quote="del")
    assert bare.packs == {(task.id, 0): pack.model_copy(update={"findings": (told,)}), (blank.id, 0): make_pack()}
    assert (bare.episodes, bare.failed) == ({}, 0)
