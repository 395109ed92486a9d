"""Where a test leaves the random numbers that it uses: in two runs of a test, this differs if no seed repeats them.

Standard library only, Python 3.6 and later.
"""

import os
import random


class SystemNumbers:
    """Stands in for `os.urandom` and remembers what it has returned.

    An object and not a function, since a function in a class would become a method.
    """

    def __init__(self):
        self.original = os.urandom
        self.returned = 0

    def __call__(self, size):
        """As `os.urandom`."""
        numbers = self.original(size)
        self.returned = hash((self.returned, numbers))
        return numbers

    def install(self):
        """Takes the place of `os.urandom`, also where `random` and `secrets` get it from."""
        # A module that has imported the function by its name before keeps the original.
        os.urandom = random._urandom = self  # type: ignore[attr-defined]

    def state(self):
        """Where the shared random numbers of Python and those of the system are."""
        return hash((random.getstate(), self.returned))
