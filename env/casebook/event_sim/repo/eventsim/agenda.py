"""The agenda: what happens next."""

import heapq
from dataclasses import dataclass, field
from typing import Callable


@dataclass(order=True)
class Event:
    """An action at a time; lower `priority` goes first, then what was added first."""

    time: float
    priority: int
    serial: int
    action: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)


class Agenda:
    """A queue of events ordered by time, priority and age."""

    def __init__(self):
        self._heap = []
        self._serial = 0

    def __len__(self):
        return sum(not event.cancelled for event in self._heap)

    def add(self, time, action, priority=0):
        """Put `action` on the agenda and return its event."""
        self._serial += 1
        event = Event(time, priority, self._serial, action)
        heapq.heappush(self._heap, event)
        return event

    def pop_before(self, end):
        """Remove and return the next event strictly before `end`, None if there is none."""
        while self._heap:
            if self._heap[0].time >= end:
                return None
            event = heapq.heappop(self._heap)
            if not event.cancelled:
                return event
        return None
