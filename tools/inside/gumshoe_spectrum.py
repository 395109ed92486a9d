"""Runs a program whose tests use unittest, Django's runner or sympy's, and counts which lines they run.

    GUMSHOE_SPECTRUM=request.json python gumshoe_spectrum.py -- -m unittest -v

Standard library only, Python 3.6 to 3.14. The request is `{"record": path}`; what is written there is described in
`gumshoe_suspects`. If the program runs pytest after all, that module writes the record as a plugin. A program that runs
none of these leaves no record, nor does one that runs its tests in other processes.
"""

import os
import sys

_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [_HERE, *(each for each in sys.path if os.path.realpath(each) != _HERE)]

import gumshoe_sympy_hooks  # noqa: E402 - it is beside this file
import gumshoe_unittest_hooks  # noqa: E402
from gumshoe_program import Nobody, read_request, run_program  # noqa: E402
from gumshoe_suspects import SpectrumObserver  # noqa: E402


def main(arguments):
    """Carries out the request. Returns the exit code of the program, 2 for one that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_SPECTRUM", __file__)
    if request is None:
        return 2
    os.environ["GUMSHOE_LINES"] = request["record"]
    os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, ("gumshoe_suspects", os.environ.get("PYTEST_PLUGINS"))))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_HERE, os.environ.get("PYTHONPATH"))))
    spectrum = SpectrumObserver(request["record"], os.getcwd())
    gumshoe_unittest_hooks.observe(spectrum)
    gumshoe_sympy_hooks.observe(spectrum)
    try:
        return run_program(program, Nobody)
    finally:
        if spectrum.has_tests:
            spectrum.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
