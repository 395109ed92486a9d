"""The simulator: a clock and an agenda."""

from .agenda import Agenda


class Ticker:
    """An action repeated at start, start + period, start + 2 * period, ... seconds."""

    def __init__(self, simulator, start, period, action):
        self._simulator = simulator
        self._start = start
        self._period = period
        self._action = action
        self.ticks = 0
        self._event = simulator.at(start, self._tick)

    def stop(self):
        """End the repetition."""
        self._event.cancelled = True

    def _tick(self):
        self.ticks += 1
        following = self._simulator.now + self._period
        self._event = self._simulator.at(following, self._tick)
        self._action()


class Simulator:
    """Runs actions at their simulated time. `now` is in seconds and starts at 0."""

    def __init__(self):
        self.now = 0.0
        self.executed = 0
        self._agenda = Agenda()

    def at(self, time, action, priority=0):
        """Schedule `action` at an absolute time.

        Raises:
            ValueError: the time has passed.
        """
        if time < self.now:
            raise ValueError("{} is before now ({})".format(time, self.now))
        return self._agenda.add(time, action, priority)

    def after(self, delay, action, priority=0):
        """Schedule `action` in `delay` seconds."""
        return self.at(self.now + delay, action, priority)

    def every(self, period, action, start=None):
        """Repeat `action` each `period` seconds, from `start` (default: now) on."""
        if period <= 0:
            raise ValueError("period must be positive")
        return Ticker(self, self.now if start is None else start, period, action)

    def run(self, end):
        """Execute all events before `end`, move the clock to `end`, return how many there were."""
        before = self.executed
        while True:
            event = self._agenda.pop_before(end)
            if event is None:
                break
            self.now = event.time
            self.executed += 1
            event.action()
        self.now = max(self.now, end)
        return self.executed - before

    def pending(self):
        """Return how many events are still to come."""
        return len(self._agenda)
