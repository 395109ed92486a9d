"""Spectrum-based fault localization: which lines the failing and the passing tests run, and formulas for it.

A formula takes, of one line, the numbers of failing and of passing tests that run it, and the numbers of all failing
and of all passing tests. A line that no failing test runs gets 0.
"""

from __future__ import annotations

import contextlib
import math
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import TestRun
from gumshoe.tools.code.functions import Span, innermost, spans
from gumshoe.tools.code.source import read_source
from gumshoe.tools.runs.commands import Script, is_pytest, read_written

_RECORD = "lines.json"
_FILE_BYTES = 16 << 20
_FILES = 2000

Count = Annotated[int, Field(ge=0, lt=1 << 31)]
Formula = Callable[[int, int, int, int], float]


def ochiai(failing: int, passing: int, failed: int, passed: int) -> float:
    """`failing / sqrt(failed * (failing + passing))`, 0 to 1.

    R. Abreu, P. Zoeteweij, A. van Gemund: On the Accuracy of Spectrum-based Fault Localization, TAIC PART 2007.
    """
    return failing / math.sqrt(failed * (failing + passing)) if failing else 0.0


def dstar(failing: int, passing: int, failed: int, passed: int) -> float:
    """`failing**2 / (passing + failed - failing)`, from 0 on; half a test stands for a denominator of none.

    W. E. Wong, V. Debroy, R. Gao, Y. Li: The DStar Method for Effective Software Fault Localization, IEEE Transactions
    on Reliability 63(1), 2014, with the exponent 2.
    """
    return failing**2 / ((passing + failed - failing) or 0.5)


def tarantula(failing: int, passing: int, failed: int, passed: int) -> float:
    """The share of failing tests over the sum of the shares of failing and of passing tests, 0 to 1.

    J. A. Jones, M. J. Harrold: Empirical Evaluation of the Tarantula Automatic Fault-Localization Technique, ASE 2005.
    """
    if not failing:
        return 0.0
    share = failing / failed
    return share / (share + (passing / passed if passed else 0.0))


def barinel(failing: int, passing: int, failed: int, passed: int) -> float:
    """`1 - passing / (passing + failing)`, 0 to 1: the estimate for a single fault.

    R. Abreu, P. Zoeteweij, A. van Gemund: Spectrum-Based Multiple Fault Localization, ASE 2009.
    """
    return failing / (passing + failing) if failing else 0.0


FORMULAS: dict[str, Formula] = {"ochiai": ochiai, "dstar": dstar, "tarantula": tarantula, "barinel": barinel}


class Spectrum(BaseModel):
    """What `runs.suspects` in `env/inside` wrote.

    `running` of the failing tests had not ended when the time was up. `lines` holds, by path and line, how many failing
    and passing tests ran it; lines that no failing test ran are left out. `distances` holds, by path and the line at
    which a function begins, how many calls lie between it and the frame that failed.
    """

    failed: Count
    passed: Count
    running: Count = 0
    lines: dict[str, dict[Count, tuple[Count, Count]]] = Field(max_length=_FILES)
    distances: dict[str, dict[Count, Count]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Suspect:
    """A function that may hold the bug: its lines, the most suspicious of them, and how suspicious it is.

    `distance` is the number of calls between it and the frame that failed; None where that is not known. `signals` are
    what its score was made of, by name; there are none where that is a single formula.
    """

    path: str
    span: Span
    score: float
    lines: tuple[int, ...]
    distance: int | None = None
    signals: Mapping[str, float] = field(default_factory=dict)


def rank(
    spectrum: Spectrum, functions: Mapping[str, Sequence[Span]], formula: Formula = FORMULAS["ochiai"]
) -> list[Suspect]:
    """The functions that failing tests run, most suspicious first.

    A function is as suspicious as its most suspicious line. Among equals, the nearest to the frame that failed comes
    first, then the one with more such lines. A line belongs to the innermost of the `functions`.
    """
    found = [
        suspect
        for path, spans_there in functions.items()
        for suspect in _suspects_of(path, spans_there, spectrum, formula)
        if suspect.score
    ]
    return sorted(found, key=_order)


def _order(suspect: Suspect) -> tuple[float, float, int, str, int]:
    distance = float("inf") if suspect.distance is None else suspect.distance
    return -suspect.score, distance, -len(suspect.lines), suspect.path, suspect.span.start


def _suspects_of(path: str, functions: Sequence[Span], spectrum: Spectrum, formula: Formula) -> Iterator[Suspect]:
    lines: dict[Span, dict[int, tuple[int, int]]] = {}
    for line, counts in spectrum.lines[path].items():
        around = innermost(functions, line)
        if around is not None:
            lines.setdefault(around, {})[line] = counts
    for span, counted in lines.items():
        score, worst = worst_lines(counted, spectrum, formula)
        yield Suspect(path, span, score, worst, distance=spectrum.distances.get(path, {}).get(span.start))


def worst_lines(
    counted: Mapping[int, tuple[int, int]], spectrum: Spectrum, formula: Formula
) -> tuple[float, tuple[int, ...]]:
    """The highest score of some lines, and those that have it; 0 where there are no lines.

    `counted` says, by line, how many failing and passing tests ran it.
    """
    scores = {line: formula(*counts, spectrum.failed, spectrum.passed) for line, counts in counted.items()}
    highest = max(scores.values(), default=0.0)
    return highest, tuple(sorted(line for line, score in scores.items() if score == highest))


def read_spectrum(data: bytes) -> Spectrum:
    """What the plugin wrote; programs in the sandbox can write to its file, too. Raises ValueError."""
    if len(data) > _FILE_BYTES:
        raise ValueError(f"more than {_FILE_BYTES} bytes")
    try:
        return Spectrum.model_validate_json(data)
    except ValidationError as error:
        raise ValueError(f"not a spectrum: {error.error_count()} errors") from None


def follow(workspace: Workspace) -> tuple[TestRun, Spectrum]:
    """Runs the tests once more and follows every line: the run, and what ran.

    Outcomes of single tests are known for pytest only. Raises ToolFailure where the run tells nothing.
    """
    measures = [_follow_with_plugin] if is_pytest(workspace.entrypoint) else [_follow_program, _follow_with_plugin]
    why = ""
    for measure in measures:
        run, data = measure(workspace)
        try:
            return run, read_spectrum(data)
        except ValueError:
            why = _why_not(run)
        if run.result.timed_out:
            break
    raise ToolFailure("no_spectrum", f"The tests could not be followed: {why}. Use eval and pdb.")


def _why_not(run: TestRun) -> str:
    """Why a run tells nothing."""
    crashed = next((outcome for outcome in run.outcomes if outcome.outcome == "crashed"), None)
    if crashed is not None:
        return f"{crashed.message} in {crashed.id}"
    return "they ran too long" if run.result.timed_out else "neither pytest nor unittest runs them in one process"


def _follow_with_plugin(workspace: Workspace) -> tuple[TestRun, bytes]:
    """With a plugin of pytest, however the entrypoint starts that."""
    record = f"{workspace.sandbox.support}/{_RECORD}"
    plugins = {"runs.suspects": {"GUMSHOE_LINES": record}}
    run = workspace.run_tests(warm=True, plugins=plugins, tracebacks=False)
    return run, read_written(workspace.sandbox, record)


def _follow_program(workspace: Workspace) -> tuple[TestRun, bytes]:
    """As a Python program that runs its tests with unittest or Django."""
    script = Script(workspace, "suspects")
    run = TestRun(result=script.run({"record": f"{script.folder}/{_RECORD}"}))
    return run, script.read(_RECORD)


def functions_of(workspace: Workspace, spectrum: Spectrum) -> dict[str, tuple[Span, ...]]:
    """The functions of the files that ran and that the agent may see."""
    sources = read_sources(workspace, spectrum.lines)
    return {path: tuple(span for span in spans(source) or () if not span.is_class) for path, source in sources.items()}


def read_sources(workspace: Workspace, paths: Iterable[str]) -> dict[str, str]:
    """The files among some paths that the agent may see, by path in order; each path has to be written in one way, as
    the plugin does.
    """
    sources: dict[str, str] = {}
    for path in sorted(set(paths)):
        if posixpath.normpath(path) == path:
            with contextlib.suppress(ToolFailure):
                sources[path] = "\n".join(read_source(workspace.read_text(path)).shown)
    return sources
