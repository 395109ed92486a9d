"""The kinds of mistakes, one small file per family."""

from gumshoe.env.synth.mutation import Operator
from gumshoe.env.synth.operators.arithmetic import ARITHMETIC
from gumshoe.env.synth.operators.comparison import COMPARISON
from gumshoe.env.synth.operators.conditions import BOOLEAN_OPERATOR, DROPPED_CONDITION, INVERTED_CONDITION
from gumshoe.env.synth.operators.defaults import WRONG_DEFAULT
from gumshoe.env.synth.operators.exceptions import CHANGED_EXCEPTION
from gumshoe.env.synth.operators.missing import (
    DROPPED_ARGUMENT,
    DROPPED_STATEMENT,
    LOOP_CONTROL,
    MISSING_BRANCH,
    MISSING_RETURN,
    REMOVED_AWAIT,
)
from gumshoe.env.synth.operators.multi_site import MULTI_SITE
from gumshoe.env.synth.operators.names import WRONG_ATTRIBUTE, WRONG_CALL, WRONG_VARIABLE
from gumshoe.env.synth.operators.numbers import OFF_BY_ONE, RANGE_BOUNDS
from gumshoe.env.synth.operators.omissions import MISSING_GUARD, MISSING_HANDLER, MISSING_NORMALIZATION
from gumshoe.env.synth.operators.state import MUTABLE_DEFAULT, SHARED_STATE, STALE_CACHE
from gumshoe.env.synth.operators.swaps import SWAPPED_ARGUMENTS, SWAPPED_RESULT

__all__ = ["OPERATORS"]

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        ARITHMETIC,
        BOOLEAN_OPERATOR,
        CHANGED_EXCEPTION,
        COMPARISON,
        DROPPED_ARGUMENT,
        DROPPED_CONDITION,
        DROPPED_STATEMENT,
        INVERTED_CONDITION,
        LOOP_CONTROL,
        MISSING_BRANCH,
        MISSING_GUARD,
        MISSING_HANDLER,
        MISSING_NORMALIZATION,
        MISSING_RETURN,
        MULTI_SITE,
        MUTABLE_DEFAULT,
        OFF_BY_ONE,
        RANGE_BOUNDS,
        REMOVED_AWAIT,
        SHARED_STATE,
        STALE_CACHE,
        SWAPPED_ARGUMENTS,
        SWAPPED_RESULT,
        WRONG_ATTRIBUTE,
        WRONG_CALL,
        WRONG_DEFAULT,
        WRONG_VARIABLE,
    )
}
