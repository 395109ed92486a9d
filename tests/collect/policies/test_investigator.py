"""The investigator: what it believes, and what it tries."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gumshoe.collect.episode.tool_output import ToolOutput
from gumshoe.collect.policies.heuristics import VarySuspects
from gumshoe.collect.policies.investigator.belief import Belief, form_belief
from gumshoe.collect.policies.investigator.looks import information, looks
from gumshoe.collect.policies.investigator.policy import Investigator
from gumshoe.collect.policies.strategy import StrategyPolicy
from gumshoe.errors import PolicyError
from gumshoe.records import Failure, Observation
from gumshoe.tools.code.small_changes import changes_at
from gumshoe.tools.code.statements import statements_in
from support.collect.small_trajectories import OPENING, schemas

CODE = """\
def total(prices, rate):
    left = list(prices)
    while left:
        if left[0] > 10 and rate:
            left = left[1:]
        else:
            break
    return left
"""


def statements(code: str = CODE, first: int = 1) -> dict[int, Any]:
    lines = dict(enumerate(code.splitlines(), first))
    return {one.line: one for one in statements_in("shop.py", lines, 1, 10**6)}


def tried_at(line: int, code: str = CODE) -> list[str]:
    return [change.do for change in changes_at(statements(code)[line])]


def test_code_that_cannot_be_parsed_has_lines_only() -> None:
    found = statements("def f(:\n    # note\n    return )\n")
    assert {line: (one.code, one.node) for line, one in found.items()} == {1: ("def f(:", None), 3: ("return )", None)}
    assert all(changes_at(one) == [] for one in found.values())


def test_changes_turn_conditions_move_bounds_and_take_other_names() -> None:
    condition = tried_at(4)
    assert {
        "condition not (left[0] > 10 and rate)",
        "condition left[0] > 10 or rate",
        "condition left[0] >= 10 and rate",
        "condition left[0] > 11 and rate",
        "condition rate",
        "true",
        "false",
    } <= set(condition)
    assert {"replace left = left[2:]", "replace left = prices[1:]", "skip"} <= set(tried_at(5))
    assert "replace continue" in tried_at(7)
    assert {"replace pass", "replace return __import__('copy').copy(left)"} <= set(tried_at(8))
    powers = [change.power for change in changes_at(statements()[4])]
    assert powers == sorted(powers, reverse=True)


def test_what_shares_its_line_with_others_is_changed_as_a_part_of_the_line() -> None:
    lines = {1: "for x in y[1:]: t += x", 2: "a = 1; b = 2", 3: "def g(x): return x"}
    loop, added, one, two, outer, returned = statements_in("shop.py", lines, 1, 3)
    assert "iterate y[2:]" in {change.do for change in changes_at(loop)}
    assert "replace for x in y[1:]: t -= x" in {change.do for change in changes_at(added)}
    assert "replace for x in y[1:]: continue; t += x" in {change.do for change in changes_at(added)}
    assert "replace for x in y[1:]: pass" in {change.do for change in changes_at(added)}
    assert "replace a = 2; b = 2" in {change.do for change in changes_at(one)}
    assert "replace a = 1; b = 3" in {change.do for change in changes_at(two)}
    assert changes_at(outer) == []
    assert "replace return not (x)" in {change.do for change in changes_at(returned)}


@pytest.mark.parametrize(
    ("code", "end", "changes"),
    [
        ("if a: x = a - 1\nreturn x", 9, True),
        ("if a: x = a - 1", 1, True),
        ("if a: x = a - 1", 9, False),  # an `else` may follow
        ("if a: x = a - 1\nelse:", 2, False),
        ("if a: x = a - 1\nelse: x = 2\nreturn x", 3, False),
    ],
)
def test_a_line_is_changed_where_it_holds_all_of_its_statement(code: str, end: int, *, changes: bool) -> None:
    header, body, *_ = statements_in("shop.py", dict(enumerate(code.splitlines(), 1)), 1, end)
    assert "condition not (a)" in {change.do for change in changes_at(header)}
    assert ("replace if a: x = a + 1" in {change.do for change in changes_at(body)}) is changes
    assert bool(changes_at(body)) is changes


def output(step: int, tool: str, text: str = "", **data: Any) -> ToolOutput:
    return ToolOutput(step, Observation(tool=tool, text=text, data=data))


def suspects(*scores: float) -> ToolOutput:
    """Functions of eight lines, one below the other, all as in CODE."""
    found: list[Any] = [
        {"path": "shop.py", "function": name, "start": end - 7, "end": end, "score": score, "lines": [end]}
        for name, end, score in ((f"f{number}", 8 + 8 * number, score) for number, score in enumerate(scores))
    ]
    return output(0, "suspects", suspects=found, shown=len(found))


def view(count: int) -> ToolOutput:
    return output(1, "view", path="shop.py", start=1, lines=CODE.splitlines() * count)


def trial(line: int, do: str, **more: Any) -> ToolOutput:
    ran: Any = {"error": None, "hits": 1, "exit_code": 1, "unchanged_exit_code": 1}
    result = {"path": "shop.py", "line": line, "do": do, **ran, "passes": [], "fails": [], "still_fails": ["t"], **more}
    return output(2, "whatif", f"unchanged\n1 shop.py:{line} {do}", variants=[result])


FAILURE = output(0, "eval", outcomes=[{"id": "t", "outcome": "failed", "message": "E", "frames": []}])
TWO = [suspects(0.9, 0.6), view(2)]
REPAIR = trial(11, "condition not (left)", passes=["t"], still_fails=[])


def named(belief: Belief) -> dict[str, float]:
    return {function.name: round(share, 3) for function, share in belief.functions.items()}


def test_the_belief_follows_the_spectrum_and_then_the_experiments() -> None:
    before, repaired = form_belief(TWO), form_belief([*TWO, REPAIR])
    assert [function.name for function in before.ranked()] == ["f0", "f1"]
    assert before.ranked_statements()[0].line == 8
    assert named(form_belief([*TWO, trial(8, "replace pass")]))["f0"] < named(before)["f0"]
    assert repaired.ranked()[0].name == "f1"
    assert repaired.ranked_statements()[0].line == 11
    mixed = trial(11, "condition not (left)", passes=["t", "s"], fails=["u"], still_fails=[])
    assert named(before)["f1"] < named(form_belief([*TWO, mixed]))["f1"] < named(repaired)["f1"]
    harmful = trial(11, "condition not (left)", passes=["t"], fails=["u", "v"], still_fails=[])
    assert named(form_belief([*TWO, harmful]))["f1"] < named(before)["f1"]


def test_a_line_that_is_not_reached_leaves_its_share_to_the_others_of_its_function() -> None:
    before, after = form_belief(TWO), form_belief([*TWO, trial(8, "skip", hits=0)])
    assert named(after) == named(before)
    assert before.ranked_statements()[0].line == 8
    assert after.ranked_statements()[0].line != 8
    assert [one.line for one in after.statements_of(after.ranked()[0])][-2:] in ([8, 1], [1, 8])


def test_the_more_of_the_failing_tests_pass_the_more_a_change_says() -> None:
    def of(passing: int, *fails: str) -> float:
        tests = [f"t{number}" for number in range(4)]
        made = trial(11, "skip", passes=tests[:passing], still_fails=tests[passing:], fails=list(fails))
        return named(form_belief([*TWO, made]))["f1"]

    shares = [of(1), of(3), of(4, "u"), of(4)]
    assert shares == sorted(shares)
    assert of(1) < 1.2 * named(form_belief(TWO))["f1"]
    blunt = trial(11, "false", passes=["t"], still_fails=[])
    assert named(form_belief([*TWO, REPAIR]))["f1"] > named(form_belief([*TWO, blunt]))["f1"]


def test_a_statement_that_is_repaired_is_left_alone_and_its_rivals_are_tested() -> None:
    seen = [FAILURE, *TWO, REPAIR]
    found = [look for look in looks(form_belief(seen), seen, ["whatif"]) if look.kind == "whatif"]
    assert found
    assert all(change.line != 11 for look in found for change in look.changes)


def test_a_tool_that_gives_no_answer_twice_is_left_alone() -> None:
    seen = [FAILURE, *TWO]
    refused = ToolOutput(3, Observation(tool="whatif", text="no", failure=Failure(kind="no_python", message="no")))

    def kinds(outputs: list[ToolOutput]) -> set[str]:
        return {look.kind for look in looks(form_belief(outputs), outputs, ["whatif", "trace", "report"])}

    assert kinds([*seen, refused]) == {"whatif", "trace"}
    assert kinds([*seen, refused, refused]) == {"trace"}


def test_a_value_that_nobody_takes_is_suspicious() -> None:
    seen = [suspects(0.9, 0.9), view(2)]
    dropped = CODE.replace("return left", "left").splitlines()
    found = form_belief([*seen, output(1, "view", path="shop.py", start=9, lines=dropped)])
    assert [function.name for function in form_belief(seen).ranked()] == ["f0", "f1"]
    assert [function.name for function in found.ranked()] == ["f1", "f0"]
    assert found.ranked_statements()[0].line == 16
    assert tried_at(8, "\n".join(dropped))[0] == "return left"


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=6), st.integers(1, 48), st.sampled_from(["", "t"]))
def test_beliefs_are_probabilities(scores: list[float], line: int, passes: str) -> None:
    made = form_belief([suspects(*scores), view(len(scores)), trial(line, "skip", passes=[passes] if passes else [])])
    assert sum(made.functions.values()) + made.elsewhere == pytest.approx(1)
    assert all(share >= 0 for share in made.functions.values())
    for function in made.functions:
        own = sum(made.statements[one] for one in made.statements_of(function))
        assert own == pytest.approx(made.functions[function])


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_what_a_look_tells_is_between_nothing_and_a_bit(p: float, there: float, elsewhere: float) -> None:
    assert -1e-9 <= information(p, there, elsewhere) <= 1 + 1e-9
    assert information(p, there, there) == pytest.approx(0, abs=1e-9)


def test_without_report_it_refuses_and_without_a_trace_it_says_so() -> None:
    with pytest.raises(PolicyError, match="report"):
        StrategyPolicy(Investigator()).complete(OPENING, [])
    assert StrategyPolicy(Investigator()).complete(OPENING, schemas("report")).tool_calls == ()
    with pytest.raises(PolicyError, match="needs the tool vary"):
        StrategyPolicy(VarySuspects()).complete([], schemas("eval", "suspects", "report"))
