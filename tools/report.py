"""How an episode ends: the seeker reports what it found (`report`), a debugger hands in its patch (`submit`)."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from gumshoe.env.inside.programs.project import is_test_file
from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import ContextPack, DebugFrame, Decision, Fact, Finding, Location, Observation, RuledOut
from gumshoe.text import plural
from gumshoe.tools.base import ConfirmTwice
from gumshoe.tools.calls.schema import list_schema, object_schema
from gumshoe.tools.code.functions import innermost, spans
from gumshoe.tools.eval import as_data, describe
from gumshoe.tools.evidence.checks import check_findings, describe_place
from gumshoe.tools.evidence.facts import all_facts
from gumshoe.tools.runs.reproductions import reproduction_text, run_reproduction

PACK_TOKENS = 2000
"""Tokens a pack may have, counted as `pack_tokens` does."""

STILL_FAILS = "still_fails"
"""The kind of failure of a patch that is sent back."""
_CHARACTERS_PER_TOKEN = 4
NEAR = 0.9
"""How similar a path has to be to that of a file to be taken for it."""


def _fact_number(value: object) -> object:
    """The number in `f12` or `[f12]`, as it stands in observations."""
    return value.strip("[] f") if isinstance(value, str) else value


class _FindingArgument(BaseModel):
    """A finding as a model writes it: it cites a fact by its number. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    fact: Annotated[int, BeforeValidator(_fact_number), Field(ge=1)]
    claim: str = ""

    def to_record(self, facts: Sequence[Fact]) -> Finding:
        """The finding, with the probe of the fact that it cites. Raises ToolFailure."""
        if self.fact > len(facts):
            raise ToolFailure(
                "bad_arguments",
                f"there is no fact f{self.fact}; facts shown so far: {len(facts)}; findings may be left out",
            )
        return facts[self.fact - 1].finding(self.claim)


class _LocationArgument(BaseModel):
    """A location as a model writes it: `end` may be left out or miscopied, and unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    path: str = Field(min_length=1)
    start: int = Field(ge=1)
    end: int | None = None
    why: str = ""

    def to_record(self, workspace: Workspace) -> Location:
        """The location, with the file that is meant and the function or class around its first line.

        Small models lose a digit of the number that they copy: an end before the start is taken as the start.
        """
        end = max(self.start, self.end or 0)
        path, text = _find_file(workspace, self.path)
        around = innermost(spans(text) or (), self.start)
        symbol = None if around is None else around.name
        return Location(path=path, start=self.start, end=end, symbol=symbol, why=self.why)


_Locations = Annotated[
    list[_LocationArgument],
    list_schema({"path": str, "start": int}, optional={"end": int, "why": str}),
]
_Findings = Annotated[list[_FindingArgument], list_schema({"fact": int}, optional={"claim": str})]
_RuledOut = Annotated[list[RuledOut], list_schema({"what": str, "why": str})]
_Frame = Annotated[DebugFrame, WithJsonSchema(object_schema({"path": str, "line": int, "function": str}))]


class Report(ConfirmTwice):
    """Makes a ContextPack, with a probe for each finding that can be run again, and what came of running it.

    A test that reproduces the issue is handed over, too.

    Locations are enough: small models lose whole reports over the rest, and packs without findings score as ungrounded.
    A report that names a test as the place, or with findings that a new run contradicts, is sent back once. The
    environment ends the episode.
    """

    name = "report"
    decision = Decision.REPORT

    def run(
        self,
        workspace: Workspace,
        locations: _Locations,
        findings: _Findings | None = None,
        hypothesis: str = "",
        ruled_out: _RuledOut | None = None,
        failing_frame: _Frame | None = None,
    ) -> Observation:
        """Report what you found. Ends the search.

        Args:
            locations: where the bug is, best first
            findings: what shows it: the numbers of facts that you saw, 12 for [f12]
            hypothesis: what is wrong
            ruled_out: suspects that turned out innocent
            failing_frame: frame that fails
        """
        if not locations:
            raise ToolFailure("bad_arguments", f"locations is empty: give at least one. Usage: {self.signature.usage}")
        facts = all_facts(self.events.history) if findings else []
        places = [location.to_record(workspace) for location in locations]
        pack = ContextPack(
            locations=tuple(places),
            findings=tuple(finding.to_record(facts) for finding in findings or ()),
            failing_frame=failing_frame,
            ruled_out=tuple(ruled_out or ()),
            hypothesis=hypothesis,
        )
        tokens = pack_tokens(pack)
        if tokens > PACK_TOKENS:
            raise ToolFailure(
                "too_long", f"the report has {tokens} tokens of {PACK_TOKENS}: keep the most important parts"
            )
        self._refuse_test(places[0])
        pack = self._with_checks(workspace, pack)
        pack = pack.model_copy(update={"reproduction": reproduction_text(workspace)})
        data = {"context_pack": pack.model_dump(mode="json"), "tokens": tokens}
        renamed = {given.path: place.path for given, place in zip(locations, places, strict=True)}
        taken = [f"{path} taken as {file}" for path, file in renamed.items() if path != file]
        taken += [
            f"end {given.end} is before start {given.start}: taken as {given.start}"
            for given in locations
            if given.end is not None and given.end < given.start
        ]
        return self.observe("; ".join([_describe(pack), *taken]), data)

    def _refuse_test(self, place: Location) -> None:
        """Raises ToolFailure for the first report of a test as the place of the bug."""
        if is_test_file(place.path):
            again = "Report what is to be changed in the code under test; if that is the test, report again."
            self.send_back_once("in_tests", f"{place.path} is a test. {again}")

    def _with_checks(self, workspace: Workspace, pack: ContextPack) -> ContextPack:
        """The pack with what came of its probes. Raises ToolFailure for the first one that is contradicted."""
        findings = check_findings(workspace, pack.findings)
        wrong = [
            f"finding {number} is contradicted: {_describe_check(finding)}"
            for number, finding in enumerate(findings, start=1)
            if finding.check is not None and finding.check.status == "contradicted"
        ]
        if wrong:
            again = "Correct these or leave them out, and report again."
            self.send_back_once("contradicted", "\n".join([*wrong, again]))
        return pack.model_copy(update={"findings": findings})


def _find_file(workspace: Workspace, path: str) -> tuple[str, str]:
    """The path, or where there is no such file the only one that is spelled almost the same, and the file's text.

    Small models misspell names that they copy: one wrong letter is no wrong location. The text is empty where the file
    cannot be read.
    """
    try:
        return path, workspace.read_text(path)
    except ToolFailure as failure:
        if failure.kind != "no_such_file":
            return path, ""
    files = [entry.path for entry in workspace.list() if entry.kind == "file"]
    near = difflib.get_close_matches(path, files, n=2, cutoff=NEAR)
    if len(near) != 1:
        return path, ""
    try:
        return near[0], workspace.read_text(near[0])
    except ToolFailure:
        return near[0], ""


def _describe(pack: ContextPack) -> str:
    """How much was reported, and how much of it holds."""
    counts = Counter(finding.check.status for finding in pack.findings if finding.check is not None)
    marks = [f"{counts[status]} {status}" for status in ("confirmed", "contradicted", "unchecked") if counts[status]]
    text = f"reported {plural(len(pack.locations), 'location')}, {plural(len(pack.findings), 'finding')}"
    return f"{text}: {', '.join(marks)}" if marks else text


def _describe_check(finding: Finding) -> str:
    assert finding.probe is not None
    assert finding.check is not None
    claimed = getattr(finding.probe, "expression", "")
    return f"at {describe_place(finding.probe)}{f', {claimed}' if claimed else ''}: {finding.check.note}"


def pack_tokens(pack: ContextPack) -> int:
    """About how many tokens the pack costs its reader: its JSON at four characters a token."""
    return -(-len(pack.model_dump_json(exclude_defaults=True)) // _CHARACTERS_PER_TOKEN)


class Submit(ConfirmTwice):
    """Says that the agent is done. The environment ends the episode and judges it.

    Where the agent has reproduced an issue, that test is run first, and a patch with which it fails is sent back once.
    """

    name = "submit"
    decision = Decision.SUBMIT

    def run(self, workspace: Workspace) -> Observation:
        """Hand in the repaired code. Ends the episode."""
        workspace.patch()  # One that is too large is refused while the agent can still do something about it.
        edited: list[JsonValue] = [*sorted({edit.path for edit in workspace.edits})]
        data: dict[str, JsonValue] = {"submitted": True, "edited": edited}
        if workspace.reproduction is None:
            return self.observe("submitted", data)
        run = run_reproduction(workspace)
        self.events.on_eval(run, workspace)
        if not run.passed:
            again = "Repair the code or the test, or submit again to hand it in unchanged."
            self.send_back_once(STILL_FAILS, f"your test does not pass yet: {describe(run)}\n{again}")
        passes = "passes" if run.passed else "does not pass"
        return self.observe(f"submitted; your test {passes}", {**data, "reproduction": as_data(run)})
