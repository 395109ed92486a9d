"""Untrusted JSON, read within limits on size, depth, numbers and characters."""

import json

MAX_DEPTH = 40
MAX_DIGITS = 400
MAX_INTEGER = 1 << 63


def read_object(line, size):
    """The JSON object in a line of bytes; None where it is not one, or is out of bounds.

    At most `size` bytes, 40 levels, integers of 64 bits, finite numbers. Half of a surrogate pair, which is not a
    character, becomes a question mark.
    """
    if len(line) > size or not line.lstrip().startswith(b"{"):
        return None
    try:
        found = json.loads(line.decode("utf-8"), parse_int=_integer, parse_float=_number, parse_constant=_refuse)
        return _cleaned(found, MAX_DEPTH)
    except (ValueError, RecursionError):
        return None


def _cleaned(value, depth):
    if depth < 0:
        raise ValueError("too many levels")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_cleaned(each, depth - 1) for each in value]
    if isinstance(value, dict):
        return {_cleaned(key, 0): _cleaned(each, depth - 1) for key, each in value.items()}
    return value


def _integer(text):
    number = int(text) if len(text) < MAX_DIGITS else MAX_INTEGER
    if not -MAX_INTEGER <= number < MAX_INTEGER:
        raise ValueError("too large a number")
    return number


def _number(text):
    number = float(text)
    if number - number != 0.0:
        raise ValueError("not a finite number")
    return number


def _refuse(text):
    raise ValueError(text)
