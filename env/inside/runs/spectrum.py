"""Runs a program whose tests use unittest, Django's runner or sympy's, and counts which lines they run.

    GUMSHOE_SPECTRUM=request.json python __main__.py runs.spectrum -- -m unittest -v

Standard library only, Python 3.6 to 3.14. The request is `{"record": path}`; what is written there is described in
`suspects`. If the program runs pytest after all, that module writes the record as a plugin. A program that runs
none of these leaves no record, nor does one that runs its tests in other processes.
"""

import os

from ..programs import sympy_hooks, unittest_hooks
from ..programs.program import STARTER, Nobody, read_request, run_program
from . import suspects


def main(arguments):
    """Carries out the request. Returns the exit code of the program, 2 for one that is not Python."""
    program, request = read_request(arguments, "GUMSHOE_SPECTRUM", "runs.spectrum")
    if request is None:
        return 2
    os.environ["GUMSHOE_LINES"] = request["record"]
    os.environ["PYTEST_PLUGINS"] = ",".join(filter(None, (suspects.__name__, os.environ.get("PYTEST_PLUGINS"))))
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, (os.path.dirname(os.path.dirname(STARTER)), os.environ.get("PYTHONPATH")))
    )
    spectrum = suspects.SpectrumObserver(request["record"], os.getcwd())
    unittest_hooks.observe(spectrum)
    sympy_hooks.observe(spectrum)
    try:
        return run_program(program, Nobody)
    finally:
        if spectrum.has_tests:
            spectrum.finish()
