"""Verdicts outlive the process that reached them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gumshoe.env.bugs.candidates import Candidate
from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.judging import CandidateVerdict, FailedTest, VerdictJournal, VerdictStatus
from gumshoe.env.bugs.make import make_bugs
from gumshoe.env.config import SandboxConfig
from gumshoe.errors import DatasetError
from support.sandboxes.sandbox_backends import CHEAPEST

pytestmark = pytest.mark.needs("bubblewrap")

CONFIG = SynthConfig(
    projects=("casebook:rolling_stats",), per_project=4, batch=2, workers=1, timeout_s=60, sandbox=CHEAPEST
)
NOWHERE = SandboxConfig(kind="local")  # which is refused without `unsafe`

texts = st.text(max_size=20)
failures = st.builds(FailedTest, texts, texts, st.lists(st.tuples(texts, st.integers(1, 99), texts)).map(tuple))
statuses = st.sampled_from(get_args(VerdictStatus))
verdicts = st.builds(
    CandidateVerdict, statuses, st.lists(texts).map(tuple), st.none() | st.dictionaries(texts, failures)
)


def bug(text: str) -> Candidate:
    return Candidate("a.py", "swap", "f", text, (1,))


class Stopped(Exception):
    pass


def stop_after_one_batch(project: str, judged: int, kept: int) -> None:
    raise Stopped


def test_what_was_judged_before_a_stop_is_not_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    with pytest.raises(Stopped):
        make_bugs(CONFIG, stop_after_one_batch, journal=VerdictJournal(path))
    before = path.read_text()
    assert len(before.splitlines()) == 2

    whole = make_bugs(CONFIG, journal=VerdictJournal(path))
    after = path.read_text()
    assert after.startswith(before)
    keys = [json.loads(line)["key"] for line in after.splitlines()]
    assert len(set(keys)) == len(keys)
    assert whole == make_bugs(CONFIG)

    # Where every verdict is known, no sandbox is opened.
    assert make_bugs(CONFIG.model_copy(update={"sandbox": NOWHERE}), journal=VerdictJournal(path)) == whole
    assert path.read_text() == after


@settings(max_examples=50)
@given(first=verdicts, second=verdicts)
def test_verdicts_come_back_as_they_were(
    first: CandidateVerdict, second: CandidateVerdict, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("journal") / "verdicts.jsonl"
    one, two = bug("1"), bug("2")
    assert VerdictJournal(path).verdicts("p", [two], lambda batch: [second]) == [second]
    assert VerdictJournal(path).verdicts("p", [one, two], lambda batch: [first] * len(batch)) == [first, second]
    assert VerdictJournal(path).verdicts("p", [one, two], lambda batch: []) == [first, second]
    assert VerdictJournal(path).verdicts("other", [one], lambda batch: [second]) == [second]


def test_a_torn_line_is_judged_again_and_a_strange_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    VerdictJournal(path).verdicts("p", [bug("1")], lambda batch: [CandidateVerdict("survived")])
    path.write_bytes(path.read_bytes() + b'{"key": "p:')
    assert VerdictJournal(path).verdicts("p", [bug("1")], lambda batch: []) == [CandidateVerdict("survived")]
    path.write_text('{"no": "key"}\n')
    with pytest.raises(DatasetError, match=r"verdicts\.jsonl line 1 has no key: remove the file"):
        VerdictJournal(path)
