"""What makes the outcome of a test a matter of chance: random numbers without a seed, and the time that it measures.

Standard library only, Python 3.6 and later.
"""

import functools
import os
import random
import sys
import time

CLOCKS = ("monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns")


class Watched:
    """Stands in for a function of a module and tells `seen` about each call: its result, and the file that called.

    An object and not a function, since a function in a class would become a method.
    """

    def __init__(self, module, name, seen):
        self.original = getattr(module, name)
        functools.update_wrapper(self, self.original)
        self.__module__ = module.__name__
        self.seen = seen

    def __call__(self, *arguments):
        """As the original."""
        result = self.original(*arguments)
        self.seen(result, sys._getframe(1).f_code.co_filename)
        return result

    def __reduce__(self):
        # Copied and pickled by its name, as the original.
        return self.__name__


class Chance:
    """Watches the system's random numbers and clocks. Python's shared random numbers need nobody to watch them.

    A module that was imported before keeps the originals.
    """

    def __init__(self):
        self.numbers = 0
        self.clocks_read_in = set()

    def watch(self):
        """Takes the place of the functions."""
        os.urandom = random._urandom = Watched(os, "urandom", self.drawn)  # type: ignore[attr-defined]
        for name in CLOCKS:
            if hasattr(time, name):  # Python 3.6 has none in nanoseconds
                setattr(time, name, Watched(time, name, self.measured))

    def drawn(self, numbers, caller):
        """Keeps what the system's random numbers were."""
        self.numbers = hash((self.numbers, numbers))

    def measured(self, seconds, caller):
        """Keeps which file has read a clock."""
        self.clocks_read_in.add(caller)

    def state(self):
        """Where the random numbers are. What a seed does not repeat differs from run to run."""
        return hash((random.getstate(), self.numbers))
