"""Pushing an export to the hub: what would go is shown, and what must not go is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.export import export_runs
from gumshoe.collect.data.store import RunFolder
from gumshoe.records import Trajectory
from support.collect.export_episodes import episode

Make = Callable[..., CollectConfig]
Run = Callable[..., subprocess.CompletedProcess[str]]


def export_one(folder: Path, config: CollectConfig, trajectory: Trajectory) -> None:
    """Exports a run of one episode to `out`."""
    with RunFolder(folder / "run", config) as run:
        run.add(trajectory)
    export_runs([folder / "run"], folder / "out", views=["agent"])


def test_push_shows_what_would_go_and_sends_nothing(tmp_path: Path, config: Make, run_here: Run) -> None:
    export_one(tmp_path, config(), episode("a", "p"))
    (tmp_path / "out" / "notes.txt").write_text("mine")
    shown = run_here("push", str(tmp_path / "out"), "--repo", "me/traces")
    assert shown.returncode == 0, shown.stderr
    assert "agent/train-" in shown.stdout
    assert "2 files" in shown.stdout
    assert "notes.txt" not in shown.stdout
    for words in ([str(tmp_path), "--repo", "me/traces"], [str(tmp_path / "out"), "--repo", "traces"]):
        wrong = run_here("push", *words)
        assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    unreachable = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_TOKEN": "x", "HF_HUB_OFFLINE": "0"}
    argv = [sys.executable, "-m", "gumshoe", "push", str(tmp_path / "out"), "--repo", "me/traces", "--yes"]
    failed = subprocess.run(argv, capture_output=True, text=True, env=unreachable, check=False)
    assert failed.returncode == 2, failed.stderr
    assert "the Hub rejected" in failed.stderr


def test_push_refuses_what_looks_like_a_key(tmp_path: Path, config: Make, run_here: Run) -> None:
    leaky = episode("a", "p").model_copy(update={"patch": "+KEY = 'sk-" + "a1" * 16 + "'"})
    export_one(tmp_path, config(), leaky)
    refused = run_here("push", str(tmp_path / "out"), "--repo", "me/traces")
    assert refused.returncode == 2
    assert "looks like a key (sk-a1a...)" in refused.stderr


def test_push_refuses_a_card_that_names_no_configs(tmp_path: Path, config: Make, run_here: Run) -> None:
    export_one(tmp_path, config(), episode("a", "p"))
    (tmp_path / "out" / "README.md").write_text("")
    refused = run_here("push", str(tmp_path / "out"), "--repo", "me/traces")
    assert refused.returncode == 2
    assert "has no configs, so no view would load" in refused.stderr
