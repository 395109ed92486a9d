"""The run folder and the journals in it: after a kill, with damage, with another config."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.config import CollectConfig
from gumshoe.collect.data.export import export_runs
from gumshoe.collect.data.journal import Diverged, Journal, comparable
from gumshoe.collect.data.store import RunFolder, read_failures, read_state, read_trajectories
from gumshoe.errors import ConfigError, DatasetError
from gumshoe.records import Completion, Observation, ToolCall
from gumshoe.storage import repair_tail
from support.collect.small_trajectories import episode, trajectory, write_run

Make = Callable[..., CollectConfig]


def test_what_was_added_is_there_when_the_folder_is_opened_again(tmp_path: Path, config: Make) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.plan(2)
        with folder.journal("a#0.1", {}) as journal:
            journal.decide(Completion(text="one"))
        assert len(list((tmp_path / "run" / "journal").iterdir())) == 1
        folder.add(trajectory("a#0.1"))
        assert list((tmp_path / "run" / "journal").iterdir()) == []
        folder.add(trajectory('b"\\#0.1'))
        folder.add_failure("c#0.1", "SandboxError", "it broke \ud800")
        folder.add_failure("c#0.1", "diverged", "other output")
    with RunFolder(tmp_path / "run", config()) as folder:
        assert folder.finished == {"a#0.1", 'b"\\#0.1'}
        assert folder.failed_attempts("c#0.1") == 1
    assert [found.id for found in read_trajectories(tmp_path / "run")] == ["a#0.1", 'b"\\#0.1']
    assert [entry["kind"] for entry in read_failures(tmp_path / "run")] == ["SandboxError", "diverged"]
    assert read_state(tmp_path / "run")["planned"] == 2


def test_a_torn_last_line_is_cut_off_and_its_episode_done_again(
    tmp_path: Path, config: Make, caplog: pytest.LogCaptureFixture
) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(trajectory("a"))
        folder.add(trajectory("b"))
    file = tmp_path / "run" / "trajectories.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    assert [found.id for found in read_trajectories(tmp_path / "run")] == ["a"]
    assert caplog.messages == [f"{file} was cut off: its last line is incomplete and left out"]
    with RunFolder(tmp_path / "run", config()) as folder:
        assert folder.finished == {"a"}
        folder.add(trajectory("b"))
    assert file.read_bytes() == whole


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=5), st.binary(max_size=9))
def test_repair_keeps_whole_lines_and_nothing_else(lines: list[bytes], tail: bytes) -> None:
    tail, whole = tail.replace(b"\n", b""), b"".join(line + b"\n" for line in lines)
    with NamedTemporaryFile() as opened:
        file = Path(opened.name)
        file.write_bytes(whole + tail)
        assert repair_tail(file) == bool(tail)
        assert file.read_bytes() == whole


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"schema_version":1', '"schema_version":99', "schema_version: "),
        ('"task":{', '"task":null,"was":{', "task: "),
        ("{", "[", "Invalid JSON"),
        ("", "[]\n", "Input should be an object"),
    ],
)
def test_a_damaged_line_is_no_finished_episode(tmp_path: Path, config: Make, old: str, new: str, said: str) -> None:
    with RunFolder(tmp_path / "run", config()) as folder:
        folder.add(trajectory("a"))
    file = tmp_path / "run" / "trajectories.jsonl"
    whole = file.read_text()
    damaged = f"\n{whole.replace(old, new, 1)}{whole}"
    file.write_text(damaged)
    with pytest.raises(DatasetError, match=f"{file} line 2: .*{said}"):
        RunFolder(tmp_path / "run", config())
    assert file.read_text() == damaged
    file.write_text(f"\n{whole}")
    with RunFolder(tmp_path / "run", config()) as folder:
        assert folder.finished == {"a"}
        assert folder.read("a").id == "a"


def test_another_config_is_refused_and_says_what_differs(tmp_path: Path, config: Make) -> None:
    RunFolder(tmp_path / "run", config()).close()
    RunFolder(tmp_path / "run", config(workers=7, budget={"tokens": 9}, attempts=1)).close()
    with pytest.raises(ConfigError, match=r"policy\.explore differs"):
        RunFolder(tmp_path / "run", config(policy={"kind": "teacher", "explore": 1.0}))
    (tmp_path / "run" / "config.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(DatasetError, match="cannot be read"):
        RunFolder(tmp_path / "run", config())


def test_a_run_from_before_there_was_some_key_goes_on(tmp_path: Path, config: Make) -> None:
    place = tmp_path / "run" / "config.yaml"
    with RunFolder(tmp_path / "run", config()) as folder:
        identity = folder.identity
    written = yaml.safe_load(place.read_text())
    del written["sandbox"]["pull"]
    place.write_text(yaml.safe_dump(written))
    with RunFolder(tmp_path / "run", config()) as folder:
        assert folder.identity == identity
    place.write_text(yaml.safe_dump({**written, "gone": 1}))
    with pytest.raises(ConfigError, match=f"{place}: .*gone"):
        RunFolder(tmp_path / "run", config())


def turn(number: int) -> Completion:
    return Completion(text=f"turn {number}", tool_calls=(ToolCall(id=str(number), name="eval"),))


def played(path: Path, *texts: str) -> Journal:
    journal = Journal(path, {"id": "x"})
    for number, text in enumerate(texts):
        journal.decide(turn(number))
        journal.observe([Observation(tool="eval", text=text)])
    return journal


def test_a_journal_is_replayed_and_continued(tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    with played(file, "0.11s at 0x7f00aa", "two") as journal:
        journal.decide(turn(2))
    with Journal(file, {"id": "x"}) as again:
        assert again.replayable == 3
        for text in ("12.5 s at 0x7fffff", "two", "new"):
            assert again.recorded() is not None
            again.observe([Observation(tool="eval", text=text)])
        assert again.recorded() is None
        again.decide(turn(3))
    for other, kept in (("x", 4), ("y", 0)):  # The journal of something else is started over.
        with Journal(file, {"id": other}) as last:
            assert last.replayable == kept


def test_other_observations_are_a_divergence(tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    played(file, "3 passed").close()
    journal = Journal(file, {"id": "x"})
    with pytest.raises(Diverged):
        journal.observe([Observation(tool="eval", text="2 passed")])
    journal.set_aside()
    assert not file.exists()
    assert (tmp_path / "j.diverged-0").exists()


def test_every_cut_of_a_journal_replays_what_was_whole(tmp_path: Path) -> None:
    file = tmp_path / "j.jsonl"
    played(file, "one", "two").close()
    data = file.read_bytes()
    for length in {*range(0, len(data), 17), data.index(b"\n"), data.index(b"\n") + 1, len(data)}:
        file.write_bytes(data[:length])
        whole = data[:length].split(b"\n")[:-1]
        with Journal(file, {"id": "x"}) as journal:
            assert journal.replayable == sum(b'"completion"' in line for line in whole)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("took 0.12s", "took 3.4s"),
        ("took 12 ms", "took 9 ms"),
        ("<A at 0x7f12ab34>", "<A at 0x7f99ab34>"),
        ("<test_signal...7f12ab34cd>", "<test_signal...7f99ab34cd>"),
        ("/tmp/a1/x.py:3", "/tmp/b2/x.py:3"),
        ("pid=12", "pid=99"),
    ],
)
def test_what_varies_does_not_count(left: str, right: str) -> None:
    assert comparable(left) == comparable(right)


def test_trees_whose_episodes_have_the_same_ids_are_not_mixed(tmp_path: Path) -> None:
    one = episode("a/b#0", "p")
    other = one.model_copy(update={"patch": "another\n"})
    runs = [write_run(tmp_path / name, kept) for name, kept in (("x", one), ("y", other), ("z", one))]
    result = export_runs([runs[0], runs[2]], tmp_path / "out", views=["steps_scored"], test_share=0)
    assert result.rows == {"steps_scored": {"train": 1, "test": 0}}
    with pytest.raises(DatasetError, match=f"{runs[0]} and {runs[1]} have the id a/b#0"):
        export_runs(runs, tmp_path / "mixed", views=["steps_scored"])
    assert not (tmp_path / "mixed").exists()
