"""The stages of one package: its report, and finished stages, kept by the hash of what went into them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from gumshoe.storage import cache_folder, in_turn, parse_json, write_atomic

__all__ = [
    "PROGRESS",
    "REPORT",
    "PackageReport",
    "StageCache",
    "key_of",
    "read_progress",
    "read_report",
    "stage_folder",
    "with_times",
    "write_report",
]

REPORT = "report.json"
# The stage that a package has reached while it is harvested, or had reached when the harvest was stopped.
PROGRESS = "progress.json"


@dataclass
class PackageReport:
    """What became of one package.

    `reason` says why it was refused, and `stage` where. `wanted` bugs were to be made; `commits` says what became of
    those of a repository's history; `verified` bugs passed the check. `seconds` has the wall-clock time of each stage,
    over all runs with the same environment.
    """

    name: str
    source: str
    version: str = ""
    stage: str = "get"
    done: bool = False
    reason: str = ""
    environment: str = ""
    skipped: tuple[str, ...] = ()
    tests: int = 0
    wanted: int = 0
    deselected: dict[str, str] = field(default_factory=dict[str, str])
    suite_s: float = 0.0
    candidates: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    commits: dict[str, int] = field(default_factory=dict[str, int])
    verified: int = 0
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def bugs_a_minute(self) -> float:
        """Verified bugs for each minute of the bugs stage."""
        spent = self.seconds.get("bugs", 0.0)
        return 60 * self.verified / spent if spent else 0.0


_REPORTS = TypeAdapter(PackageReport)


def read_report(folder: Path, file: str = REPORT) -> PackageReport | None:
    """The report of a package's set; None where there is none, or a damaged one."""
    try:
        return _REPORTS.validate_python(parse_json((folder / file).read_bytes()))
    except (OSError, ValueError):
        return None


def write_report(report: PackageReport, folder: Path, file: str = REPORT) -> None:
    """Puts a report, or one of a package that is not finished, beside its set."""
    write_atomic(folder / file, json.dumps(asdict(report), indent=1))


def read_progress(folder: Path) -> PackageReport | None:
    """What is known of a package that is not finished: its report where it was refused before, else its stage."""
    report = read_report(folder)
    if report is not None and report.done:
        return report
    begun = read_report(folder, PROGRESS)
    if begun is not None:
        return begun
    if report is None and (folder / REPORT).exists():
        why = f"{folder / REPORT} is damaged: run the harvest again"
        return PackageReport(folder.name, "", stage="report", reason=why)
    return report


def with_times(report: PackageReport, earlier: PackageReport | None) -> PackageReport:
    """The report with the time that earlier runs have spent on its stages, unless they had another environment."""
    if earlier is None or len({earlier.environment, report.environment} - {""}) > 1:
        return report
    stages = {**earlier.seconds, **report.seconds}
    total = {stage: round(earlier.seconds.get(stage, 0.0) + report.seconds.get(stage, 0.0), 1) for stage in stages}
    return replace(report, seconds=total)


# Changed whenever a stage gives a different result for the same input.
VERSION = 7

ResultT = TypeVar("ResultT")


def key_of(*parts: Any) -> str:
    """A name for the inputs of a stage: 24 hex digits."""
    return hashlib.sha256(json.dumps([VERSION, *parts], sort_keys=True, default=str).encode()).hexdigest()[:24]


def stage_folder(stage: str) -> Path:
    """Where the results of a stage are kept on this machine."""
    return cache_folder() / "harvest" / stage


class StageCache(Generic[ResultT]):
    """The results of one stage on this machine, of a type that pydantic can write as JSON."""

    def __init__(self, stage: str, kind: type[ResultT]) -> None:
        self.folder = stage_folder(stage)
        self._results = TypeAdapter(kind)

    def get(
        self, key: str, make: Callable[[Path], ResultT], valid: Callable[[ResultT], bool] = lambda known: True
    ) -> ResultT:
        """The result for a key, made with `make(folder for its files)` where there is none that is `valid`.

        One at a time: another thread or process that needs the same waits for this one's result.
        """
        folder = self.folder / key
        folder.mkdir(parents=True, exist_ok=True)
        with in_turn(folder):
            known = self._read(folder / "result.json")
            if known is None or not valid(known):
                known = make(folder)
                write_atomic(folder / "result.json", self._results.dump_json(known, indent=1))
            return known

    def _read(self, record: Path) -> ResultT | None:
        try:
            return self._results.validate_json(record.read_bytes())
        except (OSError, ValueError):
            return None
