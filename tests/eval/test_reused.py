"""Packs that exist already: an earlier run's episodes, and another arm's packs without their probes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gumshoe.collect.config import TasksConfig
from gumshoe.collect.run.control import Control
from gumshoe.errors import DatasetError
from gumshoe.eval.arms.arm import EvalRun, Hooks
from gumshoe.eval.arms.packs import EarlierEpisodes, PacksWithoutProbes
from gumshoe.eval.config import ArmConfig, EvalConfig
from gumshoe.records import Check, Finding, Task, Trajectory, WhatIfProbe
from support.eval.made import check_part, make_oracle, make_pack, make_step, make_task, make_trajectory


def run_on(tmp_path: Path, *tasks: Task, samples: int = 1) -> EvalRun:
    arm = ArmConfig(name="before", earlier=str(tmp_path / "run"))
    config = EvalConfig(out=str(tmp_path / "out"), tasks=TasksConfig(source="made", samples=samples), arms=(arm,))
    return EvalRun(config, tuple((task, make_oracle(task.id)) for task in tasks), Control())


def write_run(tmp_path: Path, *episodes: Trajectory) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "trajectories.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in episodes))
    return folder


def test_an_earlier_run_gives_its_episodes_whole(tmp_path: Path) -> None:
    """The first on a task is its first sample; a task that the run lacks counts as given up."""
    first, second = make_task("first"), make_task("second")
    sure = make_trajectory([make_step(confidence=0.8)], make_pack(("cart.py", 9, 9)), task=first, name="a")
    again = make_trajectory([make_step()], task=first, name="b")
    source = EarlierEpisodes(write_run(tmp_path, sure, again, make_trajectory(task=make_task("other"), name="c")))
    packs = source.collect(run_on(tmp_path, first, second, samples=2), Hooks())
    assert packs.episodes == {("first", 0): sure, ("first", 1): again}
    assert packs.packs == {("first", 0): sure.context_pack, ("first", 1): make_pack()}
    assert (packs.failed, source.policy) == (2, sure.policy)


def test_a_run_that_does_not_fit_is_one_clear_line(tmp_path: Path) -> None:
    task = make_task()
    with pytest.raises(DatasetError, match="is not a run folder"):
        check_part(EarlierEpisodes(tmp_path), [(task, make_oracle())])
    source = EarlierEpisodes(write_run(tmp_path, make_trajectory(task=task)))
    with pytest.raises(DatasetError, match="has no episode on any of the tasks"):
        check_part(source, run_on(tmp_path, make_task("other")).tasks)
    with pytest.raises(DatasetError, match="task t has changed since that run"):
        check_part(source, run_on(tmp_path, make_task(source="total = 0\n")).tasks)
    (tmp_path / "run" / "trajectories.jsonl").write_text("")
    with pytest.raises(DatasetError, match="has no finished episode"):
        check_part(EarlierEpisodes(tmp_path / "run"), [(task, make_oracle())])


def test_packs_without_probes_keep_their_words(tmp_path: Path) -> None:
    task, blank = make_task(), make_task("blank")
    probe = WhatIfProbe(path="cart.py", line=9, do="del", effect="1 test now passes: test_size")
    helped = Finding(claim="it helps", step=0, quote="del", probe=probe, check=Check(status="confirmed", telling=True))
    pack = make_pack(("cart.py", 8, 11), hypothesis="Line 9.").model_copy(update={"findings": (helped,)})
    folder = write_run(tmp_path, make_trajectory(pack=pack, task=task), make_trajectory(task=blank, name="b"))
    run = run_on(tmp_path, task, blank)
    run = replace(run, packs={"before": EarlierEpisodes(folder).collect(run, Hooks())})
    bare = PacksWithoutProbes("before").collect(run, Hooks())
    told = Finding(claim="it helps", step=0, quote="del")
    assert bare.packs == {(task.id, 0): pack.model_copy(update={"findings": (told,)}), (blank.id, 0): make_pack()}
    assert (bare.episodes, bare.failed) == ({}, 0)
