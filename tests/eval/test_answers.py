"""Other explorers' answers as they write them: files read into packs, and what the measures make of them."""

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
from gumshoe.eval.config import AnswersConfig, ArmConfig, EvalConfig
from gumshoe.eval.results import make_results
from gumshoe.eval.score.buggy_code import BuggyCode, check_buggy_code
from gumshoe.eval.score.metrics import own_scores
from gumshoe.records import Task, WorkspaceSpec
from support.eval.made import PATCH, SOURCE, check_part, make_oracle, make_task
from support.folder_tasks import git

TASK, OTHER = "shop__cart-17", "shop__cart-18"
MORE = {"meta_data": {"repo": "shop/cart", "base_commit": "0" * 40}, "usage": {"prompt_tokens": 31}}
"""What stands beside an answer and is of no account."""


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "cart.py").write_text(SOURCE)
    return make_task(TASK).model_copy(update={"workspace": WorkspaceSpec(path=str(tmp_path / "repo"))})


NO_PULL = SandboxConfig(pull="never")


def read(tmp_path: Path, task: Task, kind: Any, *rows: dict[str, Any] | str) -> CollectedPacks:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    answers = AnswersConfig(path=str(path), format=kind)
    arm = ArmConfig(name="theirs", answers=answers)
    config = EvalConfig(out=str(tmp_path / "out"), tasks=TasksConfig(source="made"), arms=(arm,), sandbox=NO_PULL)
    (tmp_path / "out").mkdir(exist_ok=True)
    tasks = (task, task.model_copy(update={"id": OTHER}))
    run = EvalRun(config, tuple((one, make_oracle(one.id, PATCH)) for one in tasks), Control())
    packs = AnswerPacks(answers, config)
    check_part(packs, run.tasks)
    return packs.collect(run, Hooks())


def places(packs: CollectedPacks) -> list[tuple[str, int, int]]:
    pack = packs.packs[TASK, 0]
    assert pack is not None
    return [(place.path, place.start, place.end) for place in pack.locations]


def scores(packs: CollectedPacks, task: Task) -> dict[str, float | None]:
    return own_scores(packs.episodes[TASK, 0], make_oracle(TASK, PATCH), BuggyCode([task]))


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


def test_plain_places(tmp_path: Path, task: Task) -> None:
    listed = ["other.py", "cart.py:8", "cart.py:8-11", "cart.py:Cart.size", {"path": "a.py", "start": 2, "end": 3}]
    row = {"task_id": TASK, "locations": listed, "hypothesis": "The tax is wrong.", **MORE}
    packs = read(tmp_path, task, "places", row)
    cart = [("cart.py", 8, 8), ("cart.py", 8, 11), ("cart.py", 14, 16)]
    assert places(packs) == [("other.py", 1, 1), *cart, ("a.py", 2, 3)]
    pack = packs.packs[TASK, 0]
    assert pack is not None
    assert pack.hypothesis == "The tax is wrong."


def test_a_task_without_an_answer_has_none(tmp_path: Path, task: Task) -> None:
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
        (
            "places",
            {"instance_id": "another", "locations": []},
            f"answers none of the tasks, such as {TASK}; it has another, for example",
        ),
    ],
)
def test_bad_answers_are_one_clear_line(
    tmp_path: Path, task: Task, kind: Any, row: dict[str, Any] | str, said: str
) -> None:
    with pytest.raises(DatasetError, match=said) as caught:
        read(tmp_path, task, kind, row)
    assert "\n" not in str(caught.value)


# --- bare repositories --------------------------------------------------------------------------------------------


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
    (tmp_path / "out").mkdir()
    (tmp_path / "answers.jsonl").write_text(json.dumps(LOCATED) + "\n")
    arm = ArmConfig(name="theirs", answers=AnswersConfig(path=str(tmp_path / "answers.jsonl"), format="places"))
    config = EvalConfig(
        out=str(tmp_path / "out"),
        tasks=TasksConfig(source="made"),
        arms=(arm,),
        repositories=str(tmp_path / "repositories"),
    )
    run = EvalRun(config, ((imaged, make_oracle(TASK, PATCH)),), Control())
    if is_finishing:
        run.control.finish()
    arms = make_arms(config)
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
    assert repositories.find(other) is None
    with pytest.raises(TaskError, match=rf"{TASK}: its files cannot be read: .*; no repository in the folder"):
        check_buggy_code([other], NO_PULL, repositories)
    with pytest.raises(TaskError, match="the config names no folder of `repositories`"):
        read(tmp_path, imaged, "places", LOCATED)
    with pytest.raises(TaskError, match=r"no repository in .* has the commit"):
        repositories.read(other, ["cart.py"])
