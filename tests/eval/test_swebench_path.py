"""The whole path of configs/eval/swebench_lite.yaml: served models, seekers and solver, predictions, official harness.

The instances are made here: images as the official ones are laid out, without any network. The models are scripted,
so that it is known what has to come out.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gumshoe.cli import main
from gumshoe.env.diff import make_patch
from support.eval.explorers import ANSWER_TOKENS, PROMPT_TOKENS, Models, serving
from support.sandboxes.testbed_images import REPO, a_row, built_image

pytestmark = [
    pytest.mark.needs("docker"),
    pytest.mark.skipif(importlib.util.find_spec("swebench") is None, reason="needs the extra `swebench`"),
]

COUNT = 4
TURN = PROMPT_TOKENS + ANSWER_TOKENS
PRICES = {"prompt": 1.0, "completion": 10.0}
TURN_COST = (PROMPT_TOKENS * 1.0 + ANSWER_TOKENS * 10.0) / 1e6
OLD_TEST = b"def test_old():\n    pass\n"


def source(number: int, *, clean: bool) -> bytes:
    return f'"""Part {number}."""\n\n\ndef part(n):\n    return n * {number + 2}{"" if clean else " + 1"}\n'.encode()


def statement(number: int) -> str:
    return f"Part {number} gives too much."


@pytest.fixture(scope="module")
def image() -> Generator[str]:
    """A repository with all the bugs, as the harness expects one to be laid out."""
    files = {"README.md": b"Parts.\n", "parts/__init__.py": b"", "pytest.ini": REPO["pytest.ini"]}
    for number in range(COUNT):
        files[f"parts/part{number}.py"] = source(number, clean=False)
        files[f"tests/test_part{number}.py"] = OLD_TEST
    with built_image(files) as name:
        yield name


def row_of(image: str, number: int) -> dict[str, Any]:
    path, tests = f"parts/part{number}.py", f"tests/test_part{number}.py"
    check = f"\n\ndef test_part():\n    assert part{number}.part(2) == {2 * (number + 2)}\n"
    new_test = f"from parts import part{number}\n\n\n".encode() + OLD_TEST + check.encode()
    return a_row(
        image,
        repo="owner/parts",
        instance_id=f"owner__parts-{number}",
        patch=make_patch({path: (source(number, clean=False), source(number, clean=True))}),
        test_patch=make_patch({tests: (OLD_TEST, new_test)}),
        problem_statement=statement(number),
        FAIL_TO_PASS=json.dumps([f"{tests}::test_part"]),
        PASS_TO_PASS=json.dumps([f"{tests}::test_old"]),
    )


@pytest.fixture(scope="module")
def out(image: str, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the command with seekers that are right always, half of the time and never."""
    folder = tmp_path_factory.mktemp("swebench")
    rows = folder / "rows.jsonl"
    rows.write_text("".join(f"{json.dumps(row_of(image, number))}\n" for number in range(COUNT)))
    places = {statement(number): (f"parts/part{number}.py", 5) for number in range(COUNT)}
    models = Models(places, [statement(0), statement(2)])
    with serving(models) as url:

        def policy(model: str) -> dict[str, Any]:
            return {"kind": "openai", "model": model, "base_url": url, "prices": PRICES}

        arms = [{"name": name, "policy": policy(name)} for name in ("useless", "middling", "perfect")]
        settings = {
            "out": str(folder / "out"),
            "tasks.options.path": str(rows),
            "arms": arms,
            "solver.policy": policy("solver"),
            "solver.mode": "one_shot",
            "solver.references": ["no_pack", "oracle_pack"],
            "sandbox.memory_mb": 1024,
            "flaky_runs": 1,
            "workers": 4,
            "harness.workers": 4,
            "resamples": 2000,
        }
        given = [
            word
            for key, value in settings.items()
            for word in ("-p", f"{key}={yaml.safe_dump(value, default_flow_style=True, width=9999).splitlines()[0]}")
        ]
        assert main(["eval", str(root / "configs/eval/swebench_lite.yaml"), *given]) == 0
    return folder / "out"


def arms_of(out: Path) -> dict[str, dict[str, Any]]:
    summary = json.loads((out / "summary.json").read_text())
    return {arm["name"]: arm for arm in summary["arms"]}


def values(out: Path, metric: str) -> dict[str, float | None]:
    return {name: arm["groups"]["all"][metric]["value"] for name, arm in arms_of(out).items()}


def test_the_seekers_come_out_in_their_order_with_the_known_effects(out: Path) -> None:
    """Each seeker takes two turns a task; the solver takes one where it is shown something, or is not."""
    solved = {"useless": 0, "middling": 0.5, "perfect": 1, "no_pack": 0, "oracle_pack": 1}
    assert values(out, "solved") == values(out, "official") == solved
    for metric in ("line_recall", "function_recall", "file_recall"):
        found = values(out, metric)
        assert [found[name] for name in ("useless", "middling", "perfect")] == [0.0, 0.5, 1.0]
    summary = json.loads((out / "summary.json").read_text())
    uplift = {
        one["arm"]: (one["difference"]["value"], one["better"], one["worse"])
        for one in summary["comparisons"]
        if (one["baseline"], one["metric"], one["group"]) == ("no_pack", "solved", "all")
    }
    assert uplift == {"useless": (0, 0, 0), "middling": (0.5, 2, 0), "perfect": (1, 4, 0), "oracle_pack": (1, 4, 0)}
    spent = {
        name: {what: value["value"] for what, value in arm["per_resolved"]["all"].items()}
        for name, arm in arms_of(out).items()
    }
    assert (spent["perfect"]["tokens"], spent["perfect"]["solver_tokens"]) == (2 * TURN, TURN)
    assert (spent["middling"]["tokens"], spent["middling"]["total_tokens"]) == (4 * TURN, 6 * TURN)
    assert spent["perfect"]["total_cost"] == pytest.approx(3 * TURN_COST)
    assert spent["useless"]["tokens"] is None


def test_the_official_harness_leaves_its_report(out: Path) -> None:
    (report,) = (out / "harness" / "perfect").glob("*/gumshoe-perfect.*.json")
    said = json.loads(report.read_text())
    assert (said["schema_version"], said["resolved_instances"], said["total_instances"]) == (2, COUNT, COUNT)
    predictions = [json.loads(line) for line in (out / "preds.jsonl").read_text().splitlines()]
    assert {one["model_name_or_path"] for one in predictions} == {"gumshoe-perfect"}
    assert all("+    return n * " in one["model_patch"] for one in predictions)


def test_a_harness_that_fails_leaves_the_results_whole(
    image: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = row_of(image, 0)
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    (tmp_path / "broken.jsonl").write_text(json.dumps({**row, "PASS_TO_PASS": "oops"}))
    given = [
        f"out={tmp_path / 'out'}",
        f"tasks.options.path={tmp_path / 'rows.jsonl'}",
        f"harness.rows={tmp_path / 'broken.jsonl'}",
        "arms=[{name: teacher, policy: {kind: teacher}, agent: {kind: rewrite}}]",
        "solver=null",
        "flaky_runs=0",
    ]
    words = [word for one in given for word in ("-p", one)]
    assert main(["eval", str(root / "configs/eval/swebench_lite.yaml"), *words]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gumshoe eval: ")]
    assert "the official harness failed on arm teacher: the harness ended with exit code 1" in line
    assert values(tmp_path / "out", "solved") == {"teacher": 1.0}
    result = json.loads((tmp_path / "out" / "results.jsonl").read_text())
    assert (result["scores"]["solved"], "official" in result["scores"]) == (1.0, False)
    assert (tmp_path / "out" / "preds.jsonl").exists()
