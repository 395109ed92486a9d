"""Exported rows are judged by the official harness, on images built from what is exported with them."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.env.tasks import load_tasks
from gumshoe.env.tasks.rows import read_rows
from gumshoe.eval.swebench import Prediction, run_harness

BASE = "gumshoe-python:latest"
CASES = ("casebook/ledger", "casebook/free_slots")


@pytest.fixture
def exported(tmp_path: Path) -> Iterator[Path]:
    """The rows of two cases, and their images."""
    import docker
    from docker.errors import ImageNotFound

    out = tmp_path / "rows"
    argv = ["tasks", "export", "casebook", "--to", "swebench", "--out", str(out), "--base-image", BASE]
    assert main(argv) == 0
    rows = [row for row in read_rows(out / "rows.jsonl") if row["instance_id"] in named()]
    script = (out / "build.sh").read_text(encoding="utf-8")
    client = docker.from_env()
    try:
        for row in rows:
            folder = f"images/{row['instance_id']}"
            assert f'docker build -t {row["image"]} "$(dirname "$0")"/{folder}\n' in script
            # The harness keeps containers open with a command that does not listen to the signal to stop.
            with (out / folder / "Dockerfile").open("a", encoding="utf-8") as file:
                file.write("STOPSIGNAL SIGKILL\n")
            client.images.build(path=str(out / folder), tag=row["image"], rm=True, network_mode="none")
        yield out
    finally:
        for row in rows:
            with contextlib.suppress(ImageNotFound):
                client.images.remove(row["image"], force=True)
        client.close()


def named() -> dict[str, str]:
    return {case.replace("/", "-").replace("_", "-"): case for case in CASES}


@pytest.mark.needs("docker")
@pytest.mark.skipif(importlib.util.find_spec("swebench") is None, reason="needs the extra `swebench`")
def test_the_official_harness_judges_exported_rows(exported: Path, tmp_path: Path) -> None:
    gold = {task.id: oracle.gold_patch for task, oracle in load_tasks("casebook", ids=CASES)}
    right, wrong = named()
    notes = "--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+x\n"
    patches = {right: gold[named()[right]], wrong: notes}
    predictions = [
        Prediction(instance_id=name, model_name_or_path="m", model_patch=patch) for name, patch in patches.items()
    ]
    rows = [row for row in read_rows(exported / "rows.jsonl") if row["instance_id"] in patches]
    report = run_harness(rows, predictions, tmp_path / "harness", workers=2)
    assert report.outcomes == {right: "resolved", wrong: "unresolved"}


def export(tmp_path: Path, rows: list[dict[str, Any]]) -> int:
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return main(["tasks", "export", f"swebench:{source}", "--to", "swebench", "--out", str(tmp_path / "out")])


ROW = {
    "instance_id": "a__b-1",
    "repo": "a/b",
    "base_commit": "c",
    "problem_statement": "P",
    "version": "1",
    "patch": "",
    "FAIL_TO_PASS": '["t.py::a"]',
    "PASS_TO_PASS": "[]",
    "test_patch": "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-old\n+new\n",
}


def test_rows_of_swe_bench_are_completed_where_it_is_known_how_tests_are_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert export(tmp_path, [ROW, {**ROW, "instance_id": "d__d-1", "repo": "django/django"}]) == 0
    assert (
        "left out: d__d-1: it is not known how django/django runs its tests in version 1, and" in capfd.readouterr().err
    )
    (row,) = read_rows(tmp_path / "out" / "rows.jsonl")
    assert {name: row[name] for name in ROW if "PASS" not in name} == {
        name: value for name, value in ROW.items() if "PASS" not in name
    }
    assert "python -m pytest -rA t.py" in row["eval_script"]
    assert not (tmp_path / "out" / "build.sh").exists()


def test_a_runner_that_the_harness_cannot_read_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "check.py").write_text("assert 0\n", encoding="utf-8")
    argv = ["tasks", "export", f"local:{tmp_path / 'mine'}", "-o", "entrypoint=python check.py", "--to", "swebench"]
    assert main([*argv, "--out", str(tmp_path / "out")]) == 2
    assert "and the harness needs one" in capfd.readouterr().err
