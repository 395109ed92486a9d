"""Addresses of servers in configs and on the command line."""

from __future__ import annotations

import argparse
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

__all__ = ["WebAddress", "web_address"]


def web_address(text: str) -> str:
    """The address, as it is. Raises argparse.ArgumentTypeError, in one line, if no request can be sent to it."""
    mistake = _mistake(text)
    if mistake is not None:
        raise argparse.ArgumentTypeError(f"{text!r} {mistake}")
    return text


def _mistake(text: str) -> str | None:
    if not text.lower().startswith(("http://", "https://")):
        return "is not the address of a server: begin it with http:// or https://"
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and parts.port != 0 and text.isprintable() and " " not in text
    except ValueError:  # The port is not a number, or the brackets of an IPv6 address do not match.
        named = False
    return None if named else "is not the address of a server: write it like http://127.0.0.1:8000/v1"


def _checked(text: str) -> str:
    mistake = _mistake(text)
    if mistake is not None:
        raise PydanticCustomError("web_address", "this {mistake}", {"mistake": mistake})
    return text


WebAddress = Annotated[str, AfterValidator(_checked)]
"""The address of an HTTP server, checked before anything is sent there."""
