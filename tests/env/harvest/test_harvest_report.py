"""The report of a package says what its stages took, even when they were finished before."""

from __future__ import annotations

from gumshoe.env.harvest.package import PackageReport, keep_times


def a_report(**facts: object) -> PackageReport:
    return PackageReport("shop", "shop==1", **{"version": "1", "counts": {"kept": 3}, "verified": 3, **facts})  # pyright: ignore[reportArgumentType]


def test_a_run_that_finds_its_stages_finished_keeps_their_times() -> None:
    again = a_report(seconds={"bugs": 0.1, "check": 0.2, "difficulty": 40.0})
    keep_times(again, a_report(seconds={"bugs": 30.0, "check": 60.0}))
    assert again.seconds == {"bugs": 30.0, "check": 60.0, "difficulty": 40.0}
    assert again.bugs_a_minute == 6.0


def test_a_run_with_another_result_has_its_own_times() -> None:
    other = a_report(counts={"kept": 4}, seconds={"bugs": 5.0})
    keep_times(other, a_report(seconds={"bugs": 30.0}))
    assert other.seconds == {"bugs": 5.0}
