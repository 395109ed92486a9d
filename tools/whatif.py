"""`whatif`: change a line in memory, run the tests, and see which ones change their outcome.

Predicate switching and value replacement, see `tools/inside/gumshoe_change.py`. Nothing in the workspace changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, WithJsonSchema

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import Observation
from gumshoe.tools.base import BaseTool
from gumshoe.tools.debug_session import debug_argv
from gumshoe.tools.inside.gumshoe_project import holds_tests
from gumshoe.tools.outcomes import read_outcomes
from gumshoe.tools.text import cut_line, plural

__all__ = ["MOST_VARIANTS", "Answer", "Variant", "WhatIf", "read_answers"]

MOST_VARIANTS = 16
_NAMED = 6
_MARGIN_S = 2.0
_PASSED = ("passed", "xfailed")


class Variant(BaseModel):
    """One change: at a line, the n-th time or every time, under a condition or always."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(min_length=1)
    line: int = Field(ge=1)
    do: str = Field(min_length=1)
    time: int | None = Field(default=None, ge=1)
    when: str | None = None

    def describe(self) -> str:
        """`path:line do`, with time and condition."""
        time = f" at time {self.time}" if self.time else ""
        when = f" when {self.when}" if self.when else ""
        return cut_line(f"{self.path}:{self.line} {self.do.replace(chr(10), '; ')}{time}{when}", 120)


_SHAPE = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "do": {"type": "string"},
        "time": {"type": "integer"},
        "when": {"type": "string"},
    },
    "required": ["path", "line", "do"],
}


class Answer(BaseModel):
    """What became of one run, as its process tells it: the exit code, None for one that was stopped, and how often the
    changed line was reached; or why the change cannot be made.
    """

    exit_code: int | None = Field(default=None, ge=-(1 << 31), lt=1 << 31)
    hits: int = Field(default=0, ge=0, lt=1 << 63)
    error: str | None = None


_ANSWERS = TypeAdapter(list[Answer])
_Variants = Annotated[list[Variant], WithJsonSchema({"type": "array", "items": _SHAPE})]


class WhatIf(BaseTool):
    """Runs the tests once unchanged and once for each variant."""

    name = "whatif"

    def run(self, workspace: Workspace, variants: _Variants) -> Observation:
        """Run the tests with lines changed in memory, and show which tests pass or fail then.

        Args:
            variants: up to 16 changes, each run on its own: path, line, and what to do there: code to run before the
                line (x = 3), skip, true or false (force an if or while), return EXPR, replace CODE; time: only the
                n-th time; when: only under this condition
        """
        if not 1 <= len(variants) <= MOST_VARIANTS:
            raise ToolFailure("bad_arguments", f"give 1 to {MOST_VARIANTS} variants, not {len(variants)}")
        for variant in variants:
            workspace.read_text(variant.path)
            if holds_tests(variant.path):
                raise ToolFailure("bad_arguments", f"{variant.path} is a test: whatif changes the code that is tested")
        answers, outcomes = _measure(workspace, variants)
        results = [
            _result(variant, answer, outcomes[0], found, answers[0])
            for variant, answer, found in zip(variants, answers[1:], outcomes[1:], strict=True)
        ]
        unchanged = {"exit_code": answers[0].exit_code, "outcomes": outcomes[0]}
        lines = [_describe_unchanged(answers[0], outcomes[0])]
        lines += [f"{number} {_describe(result)}" for number, result in enumerate(results, start=1)]
        return self.observe("\n".join(lines), {"unchanged": unchanged, "variants": results})


def _measure(workspace: Workspace, variants: Sequence[Variant]) -> tuple[list[Answer], list[dict[str, JsonValue]]]:
    """What became of each run, and the outcomes of its tests; the unchanged run comes first. Raises ToolFailure."""
    sandbox, timeout = workspace.sandbox, workspace.task.limits.command_timeout_s
    sandbox.prepare_support()
    folder = f"{sandbox.support}/whatif"
    request = {
        "variants": [variant.model_dump() for variant in variants],
        "folder": folder,
        "deadline_s": max(1.0, timeout - _MARGIN_S),
    }
    sandbox.run(["rm", "-rf", folder], timeout=timeout)
    sandbox.write_file(f"{folder}/request.json", json.dumps(request).encode(), inside=False)
    before = sandbox.snapshot()
    argv = debug_argv(sandbox, workspace.task.entrypoint, "gumshoe_whatif.py")
    addopts = f"{sandbox.environment.get('PYTEST_ADDOPTS', '')} -p gumshoe_outcomes -p no:cacheprovider".strip()
    env = {"GUMSHOE_WHATIF": f"{folder}/request.json", "PYTEST_ADDOPTS": addopts}
    ran = sandbox.run(argv, env=env, timeout=timeout + _MARGIN_S)
    sandbox.restore(before)
    try:
        answers = read_answers(sandbox.read_file(f"{folder}/answer.json", inside=False), len(variants) + 1)
    except (OSError, ValueError):
        why = "they ran too long" if ran.timed_out else "the entrypoint starts no Python program: " + ran.output[-300:]
        raise ToolFailure("no_whatif", f"The tests could not be run with changes: {why}") from None
    return answers, [_outcomes(workspace, f"{folder}/{number}.jsonl") for number in range(len(answers))]


def _outcomes(workspace: Workspace, record: str) -> dict[str, JsonValue]:
    """Test to outcome."""
    try:
        written = workspace.sandbox.read_file(record, inside=False)
    except OSError:
        return {}
    return {outcome.id: outcome.outcome for outcome in read_outcomes(written)}


def read_answers(data: bytes, count: int) -> list[Answer]:
    """The answers in the file that the runs' parent wrote. Raises ValueError where it does not hold so many."""
    try:
        answers = _ANSWERS.validate_json(data)
    except ValidationError:
        raise ValueError("not a list of answers") from None
    if len(answers) != count:
        raise ValueError(f"{len(answers)} answers, not {count}")
    return answers


def _result(
    variant: Variant,
    answer: Answer,
    before: Mapping[str, JsonValue],
    after: Mapping[str, JsonValue],
    unchanged: Answer,
) -> dict[str, JsonValue]:
    """The variant, how its run ended, and the tests whose outcome differs from the unchanged run."""
    over = answer.exit_code is not None
    return {
        **variant.model_dump(),
        "error": answer.error,
        "timed_out": answer.error is None and not over,
        "hits": answer.hits,
        "exit_code": answer.exit_code,
        "unchanged_exit_code": unchanged.exit_code,
        "passes": [test for test, outcome in after.items() if outcome in _PASSED and before.get(test) not in _PASSED],
        "fails": [
            test
            for test, outcome in before.items()
            if outcome in _PASSED and over and after.get(test, "missing") not in (*_PASSED, "skipped")
        ],
        "still_fails": [
            test for test, outcome in before.items() if outcome in ("failed", "error") and after.get(test) == outcome
        ],
    }


def _describe_unchanged(answer: Answer, outcomes: Mapping[str, JsonValue]) -> str:
    if not outcomes:
        code = answer.exit_code
        return "unchanged: " + ("timed out" if code is None else f"exit code {code}")
    failing = sum(outcome in ("failed", "error") for outcome in outcomes.values())
    return f"unchanged: {failing} of {plural(len(outcomes), 'test')} fail"


def _describe(result: Mapping[str, Any]) -> str:
    variant = Variant.model_validate({name: result[name] for name in Variant.model_fields})
    return f"{variant.describe()}: {_effect(result)}"


def _effect(result: Mapping[str, Any]) -> str:
    if result["error"]:
        return str(result["error"])
    if not result["hits"]:
        return "never reached"
    parts = [f"{plural(len(result[key]), 'test')} {word}: {_names(result[key])}" for key, word in _WORDS if result[key]]
    if result["timed_out"]:
        parts.append("timed out")
    if not parts and result["exit_code"] != result["unchanged_exit_code"]:
        parts.append(f"exit code {result['exit_code']}")
    return "; ".join(parts) or "no test changes"


_WORDS = (("passes", "now pass"), ("fails", "now fail"))


def _names(tests: Sequence[str]) -> str:
    more = f" and {len(tests) - _NAMED} more" if len(tests) > _NAMED else ""
    return ", ".join(tests[:_NAMED]) + more
