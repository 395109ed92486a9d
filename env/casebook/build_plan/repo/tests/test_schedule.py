import pytest

from buildplan.graph import Graph, Task
from buildplan.schedule import Schedule, Slot, critical_path, schedule


@pytest.fixture
def graph():
    """A release that needs docs (3 s) and a wheel (2 s), which needs sources (4 s)."""
    return Graph(
        [
            Task("release", ("docs", "wheel"), cost=1),
            Task("docs", cost=3),
            Task("wheel", ("sources",), cost=2),
            Task("sources", cost=4),
        ]
    )


def test_one_worker_runs_all_in_a_row(graph):
    plan = schedule(graph, "release")
    assert [slot.start for slot in plan.slots] == [0, 3, 7, 9]
    assert plan.makespan == 10
    assert plan.utilisation(1) == 1.0


def test_two_workers_run_side_by_side(graph):
    plan = schedule(graph, "release", workers=2)
    assert plan.slots == (
        Slot("docs", 0, 0, 3),
        Slot("sources", 1, 0, 4),
        Slot("wheel", 0, 4, 6),
        Slot("release", 0, 6, 7),
    )
    assert plan.utilisation(2) == pytest.approx(10 / 14)


def test_critical_path(graph):
    path, cost = critical_path(graph, "release")
    assert path == ("sources", "wheel", "release")
    assert cost == 7


def test_rescheduling_with_more_workers_is_faster(graph):
    assert schedule(graph, "release", workers=1).makespan == 10
    assert schedule(graph, "release", workers=2).makespan == 7


def test_empty_schedule():
    assert Schedule(()).makespan == 0
    assert Schedule(()).utilisation(3) == 0.0


def test_a_worker_is_needed(graph):
    with pytest.raises(ValueError, match="at least one worker"):
        schedule(graph, "release", workers=0)
