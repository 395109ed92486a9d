"""A service station with a queue, and what it measures."""

from collections import deque


class Station:
    """Serves one job at a time; jobs wait in line.

    Args:
        simulator: what runs it.
        service_time: seconds a job takes.
        room: jobs that may wait; more are turned away.
    """

    def __init__(self, simulator, service_time, room=10):
        self._simulator = simulator
        self._service_time = service_time
        self._room = room
        self._waiting = deque()
        self._busy = False
        self.waits = []
        self.rejected = 0
        self.served = 0

    def arrive(self):
        """A job arrives now."""
        if not self._busy:
            self._begin(self._simulator.now)
        elif len(self._waiting) < self._room:
            self._waiting.append(self._simulator.now)
        else:
            self.rejected += 1

    def mean_wait(self):
        """Return the mean seconds in line of the jobs begun, 0.0 before the first."""
        return sum(self.waits) / len(self.waits) if self.waits else 0.0

    def _begin(self, arrived):
        self._busy = True
        self.waits.append(self._simulator.now - arrived)
        self._simulator.after(self._service_time, self._finish)

    def _finish(self):
        self.served += 1
        self._busy = False
        if self._waiting:
            self._begin(self._waiting.popleft())
