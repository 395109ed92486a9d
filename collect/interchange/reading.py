"""What others wrote is read as it should be; where it is something else, one error says where."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from pydantic import ValidationError

from gumshoe.errors import DatasetError
from gumshoe.storage import describe

__all__ = ["reading"]


@contextmanager
def reading(where: str) -> Generator[None]:
    """Turns what a missing value, or one of another type, makes the block raise into a DatasetError about `where`."""
    try:
        yield
    except ValidationError as error:
        raise DatasetError(f"{where} cannot be read: {describe(error)}") from None
    except KeyError as error:
        raise DatasetError(f"{where} cannot be read: it lacks {error}") from None
    except (AttributeError, IndexError, OverflowError, RecursionError, TypeError, ValueError) as error:
        told = " ".join(str(error).split())
        raise DatasetError(f"{where} cannot be read: a value is not of the type that it should be ({told})") from None
