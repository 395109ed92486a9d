"""benchmarks.results.ranker: the model of `suspects` is fitted on what it records."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results import ranker
from gumshoe.env.tasks import load_tasks


def bug(number: int, rng: random.Random) -> dict[str, Any]:
    """A bug of four functions. The fix edits the one that the failing test names."""
    right = rng.randrange(4)
    functions = [
        [f"shop.py:f{one}", {name: rng.random() for name in ranker.NAMES} | {"in_test": float(one == right)}]
        for one in range(4)
    ]
    suspects = [name for name, _ in functions]
    known = {"task": f"t{number}", "project": f"p{number % 7}", "functions": functions, "suspects": suspects}
    return {**known, "edited": [f"shop.py:f{right}"], "traceback": suspects[:1]}


@pytest.fixture
def bugs() -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [bug(number, rng) for number in range(140)]


def test_the_signal_that_decides_gets_the_weight(bugs: list[dict[str, Any]]) -> None:
    model = ranker.fit(bugs)
    assert max(model, key=lambda name: model[name]["weight"]) == "in_test"
    found = ranker.accuracies(bugs, ranker.cross_validated(bugs))
    assert sum(found["function@1"]) >= 130
    assert sum(ranker.accuracies(bugs, ranker.by_signal("in_test"))["function@1"]) == 140
    assert found["file@1"] == [1.0] * 140


def test_the_model_is_written_with_what_it_was_fitted_on(
    bugs: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = {**bugs[0], "task": "other", "edited": ["cart.py:g"]}
    rows = tmp_path / "bugs.jsonl"
    rows.write_text("".join(f"{json.dumps(one)}\n" for one in [*bugs, missed, {**missed, "edited": []}]))
    out = tmp_path / "ranker.json"
    monkeypatch.setattr("sys.argv", ["ranker", "fit", str(rows), "--out", str(out)])
    ranker.main()
    model = json.loads(out.read_text())
    assert model["card"]["bugs"]["bugs"] == 141
    assert model["card"]["bugs"]["projects"] == [f"p{number}" for number in range(7)]
    assert model["elsewhere"] == round(2 / 142, 3)
    assert list(model["signals"]) == list(ranker.NAMES)


def test_a_bug_is_recorded_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task, oracle = load_tasks("casebook")[0]
    found = ranker.record(task, oracle)
    assert [name for name, _ in found["functions"]].count(found["edited"][0]) == 1
    assert set(found["suspects"]) <= {name for name, _ in found["functions"]}
    assert set(found["functions"][0][1]) == set(ranker.NAMES)
    rows = tmp_path / "bugs.jsonl"
    rows.write_text(json.dumps(found) + "\n")
    ranker.record_all([], rows, 1)
    assert len(rows.read_text().splitlines()) == 1
    assert "first suspect" in ranker.compare([found], {"first suspect": lambda one: one["suspects"]})
