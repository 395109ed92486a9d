"""What became of one package: its report, and the stage that it has reached while it is harvested."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from gumshoe.storage import parse_json, write_atomic

__all__ = ["PROGRESS", "REPORT", "PackageReport", "read_progress", "read_report", "with_times", "write_report"]

REPORT = "report.json"
# The stage that a package has reached while it is harvested, or had reached when the harvest was stopped.
PROGRESS = "progress.json"


@dataclass
class PackageReport:
    """What became of one package.

    `reason` says why it was refused, and `stage` where. `wanted` bugs were to be made; `verified` passed the check.
    `seconds` has the wall-clock time of each stage, over all runs with the same environment.
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
