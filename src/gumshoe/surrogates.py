"""Lone surrogates: halves of characters, which JSON can spell but no file in UTF-8 can hold."""

from __future__ import annotations

import re
from typing import cast

from pydantic import JsonValue

__all__ = ["clean", "clean_json", "may_hold_surrogates"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLED = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_SPELLED_BYTES = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")


def clean(text: str) -> str:
    """`text` without lone surrogates, which neither UTF-8 nor JSON can carry."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_json(value: JsonValue) -> JsonValue:
    """`value` with every text in it cleaned."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [clean_json(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean_json(cast("JsonValue", item)) for key, item in value.items()}
    return value


def may_hold_surrogates(text: str | bytes) -> bool:
    """Whether what a JSON text says may have a surrogate in it, alone or in a pair."""
    return bool(_SPELLED.search(text) if isinstance(text, str) else _SPELLED_BYTES.search(text))
