"""Wrong defaults: of a parameter, or of a lookup that may find nothing."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from gumshoe.env.synth.build import shifted
from gumshoe.env.synth.mutation import Mutation, Operator, replace
from gumshoe.env.synth.source import ParsedFile

__all__ = ["WRONG_DEFAULT"]

LOOKUPS = ("get", "pop", "setdefault", "getattr", "next")


def _propose(node: cst.Param | cst.Call, source: ParsedFile) -> Iterator[Mutation]:
    default = node.default if isinstance(node, cst.Param) else _lookup_default(node)
    if default is not None:
        for other in _others(default):
            yield replace(default, other)


def _lookup_default(call: cst.Call) -> cst.BaseExpression | None:
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    if not isinstance(name, cst.Name) or name.value not in LOOKUPS or len(call.args) < 2:
        return None
    return call.args[-1].value


def _others(default: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(default, cst.Integer):
        yield shifted(default, 1)
        if default.value not in ("0", "1"):
            yield cst.Integer("0")
    elif isinstance(default, cst.Name) and default.value in ("True", "False"):
        yield cst.Name("False" if default.value == "True" else "True")
    elif isinstance(default, cst.Name) and default.value == "None":
        yield cst.Integer("0")
    elif isinstance(default, cst.Float):
        yield cst.Float("0.0") if float(default.value) else cst.Float("1.0")
    elif isinstance(default, cst.SimpleString) and default.raw_value:
        yield cst.SimpleString('""')


WRONG_DEFAULT = Operator("wrong_default", "a default has the wrong value", (cst.Param, cst.Call), _propose)
