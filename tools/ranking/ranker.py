"""Ranks functions by how likely each is to hold the bug: their signals, and a model that weighs them.

A signal is a number that a cheap look tells about a function, from one watched run, the failures, and the sources.
Those of the spectrum are of the function's most suspicious line; those of words compare its source with what the
failing tests and their messages say; the others say where in the run it was, and what kind of function it is. `SIGNALS`
has the list.

The model is a conditional logit model (D. McFadden, 1974: the culprit is one of the candidates), so a candidate's
signals count relative to those of the others. It was fitted on bugs, mostly people's: `python -m
benchmarks.results.ranker fit` fits it and writes `ranker.json`, which also says on what it was fitted and how well it
did in cross-validation.

To add a signal: an entry of `SIGNALS` with its description, one in `signals_of` that fills it, and, if a model is to
read it as a reason, one of `REASONS` in `tools/suspects.py`. Then record the signals of the bugs again and fit the
model: see `benchmarks/results/ranker.py`.
"""

from __future__ import annotations

import json
import keyword
import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from gumshoe.env.inside.programs.project import holds_tests
from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.records import DebugFrame, TestOutcome, TestRun
from gumshoe.tools.code.functions import Span, spans
from gumshoe.tools.code.source import split_lines
from gumshoe.tools.ranking.spectrum import FORMULAS, Spectrum, Suspect, ochiai, read_sources, worst_lines
from gumshoe.tools.runs.tracebacks import own_frames

_SEARCHED = 300
"""The most names that definitions are looked for of, and the most definitions."""
FAR = 3.0
"""The logarithm that stands for an unknown number of calls: about twenty."""
_TESTS = 10
"""So many failing tests are read."""
_REFUSED = re.compile(r"([^\W\d][\w.]*)\(\) (?:got an unexpected|got multiple|missing \d|takes )")

SIGNALS = {
    "ochiai": "the highest value of its lines",
    "dstar": "the same, as a share of the highest of all functions",
    "tarantula": "the highest value of its lines",
    "barinel": "the highest value of its lines",
    "entry": "Ochiai of the function as a whole",
    "rarity": "the logarithm of how few passing tests run it",
    "exclusive": "the logarithm of how many of its lines only failing tests run",
    "executed": "the logarithm of how many of its lines failing tests run",
    "distance": "the logarithm of the number of calls between it and the frame that failed",
    "in_traceback": "share of the failing tests in whose traceback it is",
    "innermost": "share of the failing tests in whose traceback it is the last function of the project",
    "raised": "share of the failing tests in which that is at a `raise` or an `assert`",
    "test_words": "BM25 of its source for the words of the failing tests, as a share of the highest of all",
    "message_words": "the same for the words of their messages",
    "line_words": "the same for the words of the lines of the tests that failed",
    "in_test": "1 if its name is in a failing test",
    "in_message": "1 if it is in the message of one",
    "in_line": "1 if it is in the line of a test that failed",
    "refused": "1 if a message says that it refused a call",
    "test_name": "share of the words of its name that are in the name of a failing test",
    "class_test_name": "the same for the name of its class",
    "file_test_file": "share of the words of its file's name that are in that of a failing test's",
    "size": "the logarithm of the number of its lines",
    "special": "1 for a special method",
    "init": "1 for one that makes an object",
    "private": "1 if its name begins with one underscore",
    "prints": "1 for one that prints an object",
}
"""What each signal of a function is. Shares and scores of formulas are from 0 to 1."""


@dataclass(frozen=True)
class CandidateFunction:
    """A function that may hold the bug, with the lines of it that failing tests run. A function inside of another one
    belongs to that.
    """

    path: str
    span: Span
    owner: str
    source: str
    lines: Mapping[int, tuple[int, int]]

    @property
    def name(self) -> str:
        """Its name without that of its class."""
        return self.span.name.rpartition(".")[2]

    def as_suspect(self, spectrum: Spectrum, probability: float, signals: Mapping[str, float]) -> Suspect:
        """The same with its most suspicious lines, and what is known of it."""
        _, lines = worst_lines(self.lines, spectrum, ochiai)
        return Suspect(self.path, self.span, probability, lines, self.distance(spectrum), signals)

    def distance(self, spectrum: Spectrum) -> int | None:
        """The number of calls between it and the frame that failed; None where that is not known."""
        known = spectrum.distances.get(self.path, {}).items()
        return min((calls for line, calls in known if self.span.start <= line <= self.span.end), default=None)

    @property
    def is_special(self) -> bool:
        """Whether Python calls it for an operator or a statement."""
        return self.name.startswith("__") and self.name.endswith("__")


def is_mentioned(function: CandidateFunction, failures: Failures) -> bool:
    """Whether the failing tests name a function, or the class of a special method."""
    return (function.owner if function.is_special else function.name) in failures.mentioned


def candidates(texts: Mapping[str, str], spectrum: Spectrum) -> list[CandidateFunction]:
    """The functions in files of the project, which are given by path, tests left out."""
    return [
        CandidateFunction(path, span, owner, source, lines)
        for path, text in sorted(texts.items())
        if not holds_tests(path)
        for span, owner, source in _outermost(text)
        for lines in [_inside(spectrum.lines.get(path, {}), span)]
    ]


def _outermost(text: str) -> Iterator[tuple[Span, str, str]]:
    """The functions that are in no other one, each with the name of its class and its source."""
    lines = split_lines(text)
    found = spans(text) or ()
    end = 0
    for span in found:
        if not span.is_class and span.start > end:
            end = span.end
            around = (outer for outer in reversed(found) if outer.is_class and outer.start <= span.start <= outer.end)
            owner = next((outer.name.rpartition(".")[2] for outer in around), "")
            yield span, owner, "".join(lines[span.start - 1 : end])


def _inside(lines: Mapping[int, tuple[int, int]], span: Span) -> dict[int, tuple[int, int]]:
    return {line: counts for line, counts in lines.items() if span.start <= line <= span.end}


class Failures:
    """What failing tests, whose files are given by path, say: their names, code and messages.

    Attributes:
        texts: what is compared with the source of functions, by where it is from.
        refused: what the messages say refused a call.
        mentioned: all identifiers in the messages, in the lines that failed, and in the code of the tests.
    """

    def __init__(self, outcomes: Sequence[TestOutcome], texts: Mapping[str, str]) -> None:
        self.outcomes = outcomes[:_TESTS]
        messages = "\n".join(outcome.message for outcome in self.outcomes)
        frames = [frame for outcome in self.outcomes for frame in outcome.frames if holds_tests(frame.path)]
        lines = "\n".join(dict.fromkeys(frame.code for frame in frames))
        names = [outcome.id.partition("::") for outcome in self.outcomes]
        self.files = " ".join(dict.fromkeys(posixpath.basename(path) for path, _, _ in names))
        self.names = " ".join(dict.fromkeys(name.partition("[")[0] for _, _, name in names))
        code = "\n".join(dict.fromkeys(code for path, _, name in names for code in _tests(texts.get(path), name)))
        self.texts = {"test": f"{code}\n{self.names}", "message": messages, "line": lines}
        self.refused = frozenset(_REFUSED.findall(messages))
        self.mentioned = identifiers("\n".join((messages, lines, code)))


def _tests(text: str | None, name: str) -> Iterator[str]:
    """The source of a test by its pytest name; of unittest's, too."""
    wanted = re.split(r"::|\.", name.partition("[")[0])[-1]
    for span, _, source in _outermost(text or ""):
        if span.name.rpartition(".")[2] == wanted:
            yield source


def signals_of(found: Sequence[CandidateFunction], spectrum: Spectrum, failures: Failures) -> list[dict[str, float]]:
    """The signals of each candidate."""
    mentioned = {where: identifiers(text) for where, text in failures.texts.items()}
    index = Index(words(function.source) for function in found)
    relevance = {where: _shares(index.scores(words(text))) for where, text in failures.texts.items()}
    test_words, file_words = set(words(failures.names)), set(words(failures.files))
    scores = {
        name: [worst_lines(function.lines, spectrum, formula)[0] for function in found]
        for name, formula in FORMULAS.items()
    }
    scores["dstar"] = _shares(scores["dstar"])
    tracebacks = [own_frames(outcome.frames) for outcome in failures.outcomes]
    return [
        {
            **{name: values[number] for name, values in scores.items()},
            **_ran(function, spectrum),
            **_in_tracebacks(function, tracebacks),
            **{f"{where}_words": shares[number] for where, shares in relevance.items()},
            **_named(function, mentioned),
            "test_name": _common(words(function.name), test_words),
            "class_test_name": _common(words(function.owner), test_words),
            "file_test_file": _common(words(posixpath.basename(function.path).removesuffix(".py")), file_words),
            "refused": float(any(_is_refused(function, name, mentioned["line"]) for name in failures.refused)),
            "size": math.log1p(function.span.end - function.span.start + 1),
            "special": float(function.is_special),
            "init": float(function.name == "__init__"),
            "private": float(function.name.startswith("_") and not function.is_special),
            "prints": float(function.name in ("__repr__", "__str__")),
        }
        for number, function in enumerate(found)
    ]


def _shares(values: Sequence[float]) -> list[float]:
    """Each value as a share of the highest."""
    highest = max(values, default=0.0)
    return [value / highest if highest else 0.0 for value in values]


def _ran(function: CandidateFunction, spectrum: Spectrum) -> dict[str, float]:
    """What of a candidate ran in which tests, and where in the failing ones."""
    failing = max((count for count, _ in function.lines.values()), default=0)
    passing = max((count for _, count in function.lines.values()), default=0)
    distance = function.distance(spectrum)
    return {
        "entry": ochiai(failing, passing, spectrum.failed, spectrum.passed),
        "rarity": math.log((spectrum.passed + 1) / (passing + 1)),
        "exclusive": math.log1p(sum(not passing for _, passing in function.lines.values())),
        "executed": math.log1p(len(function.lines)),
        "distance": FAR if distance is None else math.log1p(distance),
    }


def _in_tracebacks(function: CandidateFunction, tracebacks: Sequence[Sequence[DebugFrame]]) -> dict[str, float]:
    """Where a candidate is in the tracebacks of failing tests."""
    number = len(tracebacks) or 1
    last = [frames[-1] for frames in tracebacks if frames and _is_in(frames[-1], function)]
    return {
        "in_traceback": sum(any(_is_in(frame, function) for frame in frames) for frames in tracebacks) / number,
        "innermost": len(last) / number,
        "raised": sum(frame.code.startswith(("raise", "assert")) for frame in last) / number,
    }


def _is_in(frame: DebugFrame, function: CandidateFunction) -> bool:
    return frame.path == function.path and function.span.start <= frame.line <= function.span.end


def _named(function: CandidateFunction, mentioned: Mapping[str, set[str]]) -> dict[str, float]:
    """Whether the name of a candidate occurs; that of a special method says nothing."""
    is_telling = not function.is_special
    return {f"in_{where}": float(is_telling and function.name in names) for where, names in mentioned.items()}


def _common(found: Iterable[str], wanted: set[str]) -> float:
    """The share of words that are wanted."""
    own = set(found)
    return len(own & wanted) / len(own) if own else 0.0


def _is_refused(function: CandidateFunction, refused: str, in_line: set[str]) -> bool:
    """Whether a candidate is the one that a message says refused a call; before Python 3.10 its class is not named, but
    it is among the identifiers of the test's line.
    """
    if refused == "__init__":
        return function.name == refused and function.owner in in_line
    return f".{function.span.name}".endswith(f".{refused}") or refused.endswith(f".{function.span.name}")


# - words that texts and code share: identifiers in parts, and BM25


_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_OF_ANY_CODE = frozenset(keyword.kwlist) | frozenset(
    {"self", "cls", "test", "tests", "the", "an", "of", "to", "str", "int", "len", "dict", "list", "set", "type"}
)
"""Words of any code. They tell nothing, and they make long texts of tests look alike."""
_SATURATION, _LENGTH = 1.2, 0.75
"""The usual constants of BM25, k1 and b."""


def identifiers(text: str) -> set[str]:
    """All identifiers of a text, whole."""
    return set(_IDENTIFIER.findall(text))


def words(text: str) -> list[str]:
    """The parts of all identifiers in a text, in small letters: `parseHTTP_url` gives parse, http and url."""
    parts = (part.lower() for name in _IDENTIFIER.findall(text) for part in _PART.findall(name))
    return [part for part in parts if len(part) > 1 and part not in _OF_ANY_CODE]


class Index:
    """Documents that are searched by words."""

    def __init__(self, documents: Iterable[Sequence[str]]) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [count.total() for count in self._counts]
        self._mean = (sum(self._lengths) / len(self._lengths) if self._lengths else 0.0) or 1.0
        self._holding = Counter(word for count in self._counts for word in count)

    def scores(self, query: Iterable[str]) -> list[float]:
        """BM25 of each document, from 0 on, for the words of a query, each counted once.

        S. Robertson, H. Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond, 2009; the inverse document
        frequency is that of Lucene, which is never negative.
        """
        wanted = [word for word in dict.fromkeys(query) if word in self._holding]
        number = len(self._counts)
        weight = {word: math.log1p((number - n + 0.5) / (n + 0.5)) for word in wanted for n in [self._holding[word]]}
        return [
            sum(weight[word] * _saturated(count[word], length / self._mean) for word in wanted if word in count)
            for count, length in zip(self._counts, self._lengths, strict=True)
        ]


def _saturated(count: int, length: float) -> float:
    """How much a word counts that a document of a relative length has `count` times."""
    return count * (_SATURATION + 1) / (count + _SATURATION * (1 - _LENGTH + _LENGTH * length))


def rank_by_signals(workspace: Workspace, ran: TestRun, spectrum: Spectrum) -> list[Suspect]:
    """The functions that failing tests run or mention, likeliest first. `ran` is the run that was followed."""
    failing = [outcome for outcome in ran.outcomes if outcome.failed]
    failures = Failures(failing, read_sources(workspace, (outcome.id.partition("::")[0] for outcome in failing)))
    paths = (*spectrum.lines, *_files_defining(workspace, failures.mentioned))
    functions = candidates(read_sources(workspace, paths), spectrum)
    found = [function for function in functions if function.lines or is_mentioned(function, failures)]
    signals = signals_of(found, spectrum, failures)
    suspects = [
        function.as_suspect(spectrum, probability, known)
        for function, known, probability in zip(found, signals, probabilities(signals), strict=True)
    ]
    return sorted(suspects, key=lambda suspect: (-suspect.score, suspect.path, suspect.span.start))


def _files_defining(workspace: Workspace, names: Iterable[str]) -> list[str]:
    """The files of the project, tests left out, that define one of the names: a call that is refused enters none.

    All names are one pattern, so their number is limited. The longest are kept: short ones, such as `i` or `x`, are
    mostly variables, and a long one is likely to be defined in few places.
    """
    wanted = "|".join(sorted(names, key=len)[-_SEARCHED:])
    if not wanted:
        return []
    try:
        found, _ = workspace.grep(rf"^\s*(?:async\s+def|def|class)\s+(?:{wanted})\b", limit=_SEARCHED)
    except ToolFailure:
        return []
    return [match.path for match in found if match.path.endswith(".py") and not holds_tests(match.path)]


@cache
def _model() -> dict[str, Any]:
    """The share of bugs that are in no candidate, `elsewhere`; by signal its `mean`, `deviation` and `weight`."""
    model: dict[str, Any] = json.loads(files("gumshoe.tools.ranking").joinpath("ranker.json").read_text("utf-8"))
    return model


def probabilities(found: Sequence[Mapping[str, float]], model: Mapping[str, Any] | None = None) -> list[float]:
    """The probability of each candidate by its signals. What they leave of 1 is that the bug is in none of them.

    `model` is as `ranker.json` holds it, and that one unless another is given.
    """
    model = model or _model()
    utilities = [
        sum(of["weight"] * (signals[name] - of["mean"]) / of["deviation"] for name, of in model["signals"].items())
        for signals in found
    ]
    highest = max(utilities, default=0.0)
    weights = [math.exp(utility - highest) for utility in utilities]
    total = sum(weights)
    return [(1 - model["elsewhere"]) * weight / total for weight in weights]
