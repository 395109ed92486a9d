"""The terminal tables, and the loss curve of a training log."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from gumshoe.console import Console
from gumshoe.errors import DatasetError
from gumshoe.eval.prepare import read_losses
from gumshoe.eval.records import ALL, ArmSummary, LossCurve, Summary
from gumshoe.eval.results.measures import measures
from gumshoe.eval.results.tables import print_table
from gumshoe.eval.scorers import make_scorers
from gumshoe.eval.scorers.sources import Sources
from gumshoe.eval.scoring import score_trajectory
from gumshoe.records import PolicyInfo
from support.eval.made import make_oracle, make_pack, make_step, make_task, make_trajectory


def two_arms() -> Summary:
    """Arm b finds half of the fix; two tasks of different splits."""
    tasks = [make_task("t1"), make_task("t2", split="heldout_projects")]
    pack = make_pack(("cart.py", 8, 8), ("other.py", 1, 2), findings=[(0, "x = 3"), (1, "unseen")])
    steps = [make_step(0, "x = 3", confidence=0.5), make_step(1, "broken", parse_error="x"), make_step(2, "", calls=0)]
    scorers = make_scorers(Sources(tasks))
    results = {
        "a": [make_trajectory([make_step(0, "x")], task=task, name=f"a{task.id}") for task in tasks],
        "b": [make_trajectory(steps, pack, task=task, name=f"b{task.id}", tokens=1200) for task in tasks],
    }
    scored = {
        name: [score_trajectory(name, one, make_oracle(one.task.id), scorers) for one in of_arm]
        for name, of_arm in results.items()
    }
    return Summary(
        title="A title",
        config_hash="f" * 64,
        seed=0,
        tasks={ALL: 2, "heldout_bugs": 1, "heldout_projects": 1},
        arms=tuple(
            ArmSummary(
                name=name,
                title=f"arm {name}",
                policy=PolicyInfo(kind="made"),
                episodes=2,
                groups=measures(of_arm, seed=0, resamples=100),
            )
            for name, of_arm in scored.items()
        ),
    )


def test_losses_are_read_by_step_and_odd_rows_left_out(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('{"step": 2, "loss": 1.5}\n{"step": 1, "loss": 2}\n{"step": 3, "loss": NaN}\n{"loss": 1}\n\n')
    assert read_losses(str(log)) == (LossCurve(label="training", points=((1.0, 2.0), (2.0, 1.5))),)
    with log.open("a") as file:
        file.write('{"step": 2, "eval_loss": 2.5}\n')
    assert [curve.label for curve in read_losses(str(log))] == ["training", "held out"]
    log.write_text("{")
    with pytest.raises(DatasetError, match="line 1: not JSON"):
        read_losses(str(log))
    log.write_text("{}\n[]\n")
    with pytest.raises(DatasetError, match="line 2 is not a JSON object"):
        read_losses(str(log))
    with pytest.raises(DatasetError, match="there is no training log"):
        read_losses(str(tmp_path / "nowhere"))


def test_the_terminal_table_has_a_line_an_arm_and_group() -> None:
    out = io.StringIO()
    print_table(two_arms(), Console(file=out, width=160))
    text = out.getvalue()
    assert "held-out bugs: 1 task," in text
    assert text.count("arm a") == 2
    assert "1,200" in text
