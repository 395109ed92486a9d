"""Give the tasks of a target to workers."""

from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Slot:
    """One run of a task on a worker, from `start` to `end` seconds."""

    task: str
    worker: int
    start: int
    end: int


@dataclass(frozen=True)
class Schedule:
    """The slots of a build, in the order they were planned."""

    slots: Tuple[Slot, ...]

    @property
    def makespan(self):
        """Seconds until the last task is done, 0 for an empty schedule."""
        return max((slot.end for slot in self.slots), default=0)

    def utilisation(self, workers):
        """Return the share of worker time spent working, 0.0 for an empty schedule."""
        busy = sum(slot.end - slot.start for slot in self.slots)
        return busy / (self.makespan * workers) if busy > 0 else 0.0


def schedule(graph, target, workers=1):
    """Plan `target`: each task on the worker that is free first, after all its dependencies.

    Raises:
        ValueError: fewer than one worker.
    """
    if workers < 1:
        raise ValueError("at least one worker is needed")
    free = [0] * workers
    finished = {}
    slots = []
    waiting = graph.order(target)
    while waiting:
        task = graph[waiting.pop(0)]
        ready = max((finished[need] for need in task.needs), default=0)
        worker = min(range(workers), key=lambda index: max(free[index], ready))
        start = max(free[worker], ready)
        end = start + task.cost
        free[worker] = finished[task.name] = end
        slots.append(Slot(task.name, worker, start, end))
    return Schedule(tuple(slots))


def critical_path(graph, target):
    """Return the chain of tasks with the largest total cost that ends in `target`, and that cost."""
    best = {}
    for name in graph.order(target):
        task = graph[name]
        before = max((best[need] for need in sorted(task.needs)), key=lambda chain: chain[1], default=((), 0))
        best[name] = (before[0] + (name,), before[1] + task.cost)
    return best[target]
