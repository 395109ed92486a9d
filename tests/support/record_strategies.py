"""Records of every kind, made by Hypothesis from the types and limits of their fields."""

from collections.abc import Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from hypothesis import strategies as st
from pydantic import JsonValue

from gumshoe import records
from gumshoe.records import Location, Record, WorkspaceSpec

RecordT = TypeVar("RecordT", bound=Record)

TEXT = st.text(max_size=40)
COUNT = st.integers(min_value=0, max_value=2**40)
SECONDS = st.floats(min_value=0, max_value=1e9)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
JSON_OBJECTS = st.dictionaries(TEXT, JSON_VALUES, max_size=3)
ALL_RECORDS = [
    value
    for name in records.__all__
    if isinstance(value := getattr(records, name), type) and issubclass(value, Record) and value is not Record
]


def strategy_of(record: type[RecordT]) -> st.SearchStrategy[RecordT]:
    """Any `record`, with all of the fields that are stored."""
    fields = {
        name: _values(field.annotation, field.metadata)
        for name, field in record.model_fields.items()
        if not field.exclude
    }
    if record is WorkspaceSpec:  # It comes from somewhere.
        fields["path"] = TEXT
    if record is Location:  # It does not end before it starts.
        fields["start"], fields["end"] = st.integers(1, 1000), st.integers(1000, 2000)
    return st.builds(record, **fields)


def _values(annotation: Any, limits: Sequence[Any] = ()) -> st.SearchStrategy[Any]:
    """Values of a type within the limits of a field."""
    kind, arguments = get_origin(annotation), get_args(annotation)
    if annotation is JsonValue:
        return JSON_VALUES
    if kind is Annotated:
        more = [limit for given in arguments[1:] for limit in getattr(given, "metadata", ())]
        return _values(arguments[0], [*limits, *more])
    if kind in (Union, UnionType):
        return st.one_of([_values(argument, limits) for argument in arguments])
    if kind is Literal:
        return st.sampled_from(arguments)
    if kind is tuple:
        return st.lists(_values(arguments[0]), min_size=_bound(limits, MinLen, 0), max_size=2).map(tuple)
    if kind is dict:
        return st.dictionaries(_values(arguments[0]), _values(arguments[1]), max_size=2)
    if issubclass(annotation, Record):
        return strategy_of(annotation)
    if issubclass(annotation, Enum):
        return st.sampled_from(annotation)
    if annotation is str:
        return st.text(min_size=_bound(limits, MinLen, 0), max_size=40)
    if annotation is int:
        return st.integers(_bound(limits, Ge, -(2**40)), _bound(limits, Lt, 2**40) - 1)
    if annotation is float:
        low = _bound(limits, Ge, _bound(limits, Gt, -1e9))
        return st.floats(low, _bound(limits, Le, 1e9), exclude_min=any(isinstance(limit, Gt) for limit in limits))
    return {bool: st.booleans(), NoneType: st.none()}[annotation]


def _bound(limits: Sequence[Any], kind: type, default: Any) -> Any:
    """The bound that a limit of this kind sets."""
    names = {Ge: "ge", Gt: "gt", Le: "le", Lt: "lt", MinLen: "min_length"}
    return next((getattr(limit, names[kind]) for limit in limits if isinstance(limit, kind)), default)
