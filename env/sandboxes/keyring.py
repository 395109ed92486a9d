"""Keeps the host's keyrings away from programs started here."""

from __future__ import annotations

import ctypes
import platform
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["with_own_session_keyring"]

KEYCTL = {"x86_64": 250, "aarch64": 219}
JOIN_SESSION_KEYRING = 1

Result = TypeVar("Result")


def with_own_session_keyring(start: Callable[[], Result]) -> Result:
    """Calls `start` where the session keyring is a new, empty one, which what it starts inherits.

    A session keyring belongs to a thread, so `start` runs in a thread of its own and this one keeps its keyring. On a
    kernel without keyrings there is nothing to keep.
    """
    results: list[Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        number = KEYCTL.get(platform.machine())
        if number is not None:
            ctypes.CDLL(None).syscall(number, JOIN_SESSION_KEYRING, None)
        try:
            results.append(start())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="gumshoe-keyring")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
