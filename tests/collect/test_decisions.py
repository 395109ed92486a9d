import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.decisions import ParsedDecision, format_decision, parse_decision
from gumshoe.records import Decision


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[seek 0.8] I look.", ParsedDecision(Decision.SEEK, 0.8, "I look.")),
        ("  [edit] now\nmore", ParsedDecision(Decision.EDIT, None, "now\nmore")),
        ("[verify 1] x", ParsedDecision(Decision.VERIFY, 1.0, "x")),
        ("[report .5]", ParsedDecision(Decision.REPORT, 0.5, None)),
        ("[submit 1.0] done", ParsedDecision(Decision.SUBMIT, 1.0, "done")),
        ("[seek 7] x", ParsedDecision(None, None, "[seek 7] x")),
        ("[think 0.5] x", ParsedDecision(None, None, "[think 0.5] x")),
        ("I look. [seek 0.5]", ParsedDecision(None, None, "I look. [seek 0.5]")),
        ("", ParsedDecision()),
    ],
)
def test_reads_what_is_stated_and_invents_nothing(text: str, expected: ParsedDecision) -> None:
    assert parse_decision(text) == expected


@given(st.sampled_from(Decision), st.none() | st.integers(0, 10), st.text(min_size=1))
def test_reads_back_what_it_writes(decision: Decision, tenths: int | None, rationale: str) -> None:
    confidence = None if tenths is None else tenths / 10
    read = parse_decision(format_decision(decision, confidence, rationale))
    assert (read.decision, read.confidence, read.rationale) == (decision, confidence, rationale.strip() or None)
