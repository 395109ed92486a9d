"""One broken entry of a source does not keep the others from being loaded, if the caller wants that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pydantic import ValidationError

from gumshoe.errors import TaskError
from gumshoe.records import Oracle, Task
from gumshoe.storage import describe

__all__ = ["OnError", "load_entries", "refuse"]

EntryT = TypeVar("EntryT")
OnError = Callable[[TaskError], None]
"""Told of an entry that is not a task; loading goes on with the others unless it raises."""


def refuse(error: TaskError) -> None:
    """Ends the loading at the first entry that is broken."""
    raise error


def load_entries(
    entries: Iterable[EntryT], make: Callable[[EntryT], tuple[Task, Oracle]], on_error: OnError
) -> list[tuple[Task, Oracle]]:
    """What `make` makes of the entries; its TaskErrors, and values that no task can have, go to `on_error`."""
    made: list[tuple[Task, Oracle]] = []
    for number, entry in enumerate(entries, 1):
        try:
            made.append(make(entry))
        except TaskError as error:
            on_error(error)
        except ValidationError as error:
            on_error(TaskError(f"entry {number} is not a task: {describe(error)}"))
    return made
