"""Says whether this interpreter can parse the text on standard input as a Python file.

    python __main__.py programs.syntax -- -m pytest < module.py

No part of the text is run, nor is the program after `--`: it only says which test server may fork for it.
"""

import os
import sys

_LIBRARY = os.path.dirname(os.__file__)
LONGEST = 500


def report(data):
    """A JSON line in bytes with a list of the error's type, message and line number; empty if there is no error."""
    import json
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "x", "exec", 0, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        message = str(getattr(error, "msg", error)) or "too much for the interpreter"
        found = [type(error).__name__, message[:LONGEST], getattr(error, "lineno", None)]
        return json.dumps(found).encode("ascii") + b"\n"
    return b""


def main(_):
    """Reads the text and prints the report."""
    # Modules of the workspace may have the same names as those that are imported from now on.
    sys.path[:] = [each for each in sys.path if os.path.dirname(each) == _LIBRARY or each == _LIBRARY]
    sys.stdout.buffer.write(report(sys.stdin.buffer.read()))
    return 0
