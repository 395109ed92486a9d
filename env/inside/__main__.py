"""Starts a program of this package in the current folder.

    python PATH/gumshoe_inside/__main__.py debugger.main -- -m pytest

The first argument names the module whose `main(arguments)` is called; what it returns is the exit code. The import path
is left as it would be without this package, whose modules can be imported all the same.
"""

import importlib
import os
import sys

STARTER = os.path.abspath(__file__)


def main(name, arguments):
    """Imports the program and runs it. Returns its exit code."""
    folder = os.path.dirname(STARTER)
    real = os.path.realpath(folder)
    sys.path[:] = [each for each in sys.path if os.path.realpath(each) != real]
    sys.path.insert(0, os.path.dirname(folder))
    package = importlib.import_module(os.path.basename(folder)).__name__
    del sys.path[0]
    return importlib.import_module("{}.{}".format(package, name)).main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
