"""How suspicious a line is: formulas of spectrum-based fault localization.

Each takes, of one line, the numbers of failing and of passing tests that run it, and the numbers of all failing and of
all passing tests. A line that no failing test runs gets 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["FORMULAS", "Formula", "barinel", "dstar", "ochiai", "tarantula"]

Formula = Callable[[int, int, int, int], float]


def ochiai(failing: int, passing: int, failed: int, passed: int) -> float:
    """`failing / sqrt(failed * (failing + passing))`, 0 to 1.

    R. Abreu, P. Zoeteweij, A. van Gemund: On the Accuracy of Spectrum-based Fault Localization, TAIC PART 2007.
    """
    return failing / math.sqrt(failed * (failing + passing)) if failing else 0.0


def dstar(failing: int, passing: int, failed: int, passed: int) -> float:
    """`failing**2 / (passing + failed - failing)`, from 0 on; half a test stands for a denominator of none.

    W. E. Wong, V. Debroy, R. Gao, Y. Li: The DStar Method for Effective Software Fault Localization, IEEE Transactions
    on Reliability 63(1), 2014, with the exponent 2.
    """
    return failing**2 / ((passing + failed - failing) or 0.5)


def tarantula(failing: int, passing: int, failed: int, passed: int) -> float:
    """The share of failing tests over the sum of the shares of failing and of passing tests, 0 to 1.

    J. A. Jones, M. J. Harrold: Empirical Evaluation of the Tarantula Automatic Fault-Localization Technique, ASE 2005.
    """
    if not failing:
        return 0.0
    share = failing / failed
    return share / (share + (passing / passed if passed else 0.0))


def barinel(failing: int, passing: int, failed: int, passed: int) -> float:
    """`1 - passing / (passing + failing)`, 0 to 1: the estimate for a single fault.

    R. Abreu, P. Zoeteweij, A. van Gemund: Spectrum-Based Multiple Fault Localization, ASE 2009.
    """
    return failing / (passing + failing) if failing else 0.0


FORMULAS: dict[str, Formula] = {"ochiai": ochiai, "dstar": dstar, "tarantula": tarantula, "barinel": barinel}
