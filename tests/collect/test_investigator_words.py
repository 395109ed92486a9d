"""What the investigator names and quotes: nothing that its messages do not show."""

from __future__ import annotations

import random

from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.collect.policies.investigator.belief import form_belief
from gumshoe.collect.policies.investigator.handover import pack_of
from gumshoe.collect.policies.investigator.latest import in_words
from gumshoe.collect.policies.investigator.words import Words
from gumshoe.records import DebugFrame, ExecResult, Observation, TestOutcome, TestRun
from gumshoe.tools.eval import as_data, describe


def test_the_report_names_only_a_frame_that_the_tests_have_shown() -> None:
    frames = [DebugFrame(path=f"shop{number}.py", line=7, function="total", code="x") for number in range(9)]
    outcomes = tuple(
        TestOutcome(id=f"test_shop.py::test_{number}", outcome="failed", message="ValueError", frames=(frame,))
        for number, frame in enumerate(frames)
    )
    run = TestRun(result=ExecResult(exit_code=1, output="", duration_s=1), outcomes=outcomes)
    shown = describe(run)
    output = ToolOutput(0, Observation(tool="eval", text=shown, data=as_data(run)))
    belief = form_belief([output])
    pack = pack_of(belief, [output], Words(random.Random(0), belief, [output]))
    assert pack is not None
    assert pack.failing_frame is not None
    assert f"{pack.failing_frame.path}:7" in shown
    assert "shop8.py" not in shown


def test_long_code_in_a_sentence_ends_with_a_whole_word() -> None:
    code = f"text = {'a' * 50} + SEPARATOR_OF_WORDS.join(words)"
    assert in_words(code) == f"`text = {'a' * 50} +` (and so on)"
    assert in_words("x" * 100) == f"`{'x' * 70}` (and so on)"
    assert in_words("x = 1") == "`x = 1`"
