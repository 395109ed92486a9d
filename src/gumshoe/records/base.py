"""What all records share."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1

LineNumber = Annotated[int, Field(ge=1)]


class Record(BaseModel):
    """Base of all records: frozen, closed to unknown fields, NaN and infinity refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TimedRecord(Record):
    """Base of the records of something that took time. Two of them are equal when all but `duration_s` is equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(tuple(self._compared().items()))

    def _compared(self) -> dict[str, Any]:
        return {name: value for name, value in self if name != "duration_s"}
