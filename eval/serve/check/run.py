"""The whole check, item by item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gumshoe.eval.serve.check.answer_form import length_stop, sampled_tokens, streaming, token_counts
from gumshoe.eval.serve.check.calls import forced_call, native_call, text_call
from gumshoe.eval.serve.check.rendering import SYNTAXES, same_rendering
from gumshoe.eval.serve.check.samples import ASK, PARALLEL, REASONED, TOOLS, TURNS
from gumshoe.eval.serve.check.sent_back import sent_back
from gumshoe.eval.serve.check.trained import TrainedRow, Unrendered, render_rows
from gumshoe.eval.serve.check.verdict import CheckItem
from gumshoe.eval.serve.check.wire import Wire
from gumshoe.records import Message, ToolSchema

__all__ = ["check_server"]

_CONVERSATIONS: dict[str, tuple[Message, ...]] = {
    "conversation": TURNS,
    "parallel calls": PARALLEL,
    "reasoning": REASONED,
}
_WITHOUT_REASONING = tuple(message.model_copy(update={"reasoning": None}) for message in REASONED)


def check_server(
    base_url: str, model: str, folder: Path, *, ask: str = ASK, tools: tuple[ToolSchema, ...] = TOOLS
) -> Iterator[CheckItem]:
    """Asks a running server and yields one verdict per item.

    What depends on the model's ability (to call a tool at all) is `not judged` if the model lacks it.

    Args:
        base_url: the server's, with the API version.
        model: the model's name there.
        folder: the model folder, which the training path renders with.
        ask: what makes this model call a tool.
        tools: the tools it is offered.

    Raises:
        ServeError: nobody answers.
    """
    wire = Wire(base_url, model)
    try:
        yield native_call(wire, ask, tools)
        yield text_call(wire, ask, tools)
        names = {tool.name for tool in tools}
        yield forced_call(wire, "required tool choice", "required", names, tools)
        last = tools[-1].name
        yield forced_call(wire, "named tool choice", {"type": "function", "function": {"name": last}}, {last}, tools)
        yield streaming(wire, ask, tools)
        yield length_stop(wire, ask)
        yield token_counts(wire, ask, tools)
        yield sampled_tokens(wire, ask)
        for syntax in SYNTAXES:
            yield sent_back(wire, syntax, ask, tools)
        yield from _renderings(wire, folder, tools)
    finally:
        wire.close()


def _renderings(wire: Wire, folder: Path, tools: tuple[ToolSchema, ...]) -> Iterator[CheckItem]:
    items = [(f"{name} as trained, syntax {syntax}", syntax, name) for syntax in SYNTAXES for name in _CONVERSATIONS]
    try:
        *found, plain = render_rows(folder, [*_CONVERSATIONS.values(), _WITHOUT_REASONING], tools)
    except Unrendered as error:
        for item, _, _ in items:
            yield CheckItem(item, "not judged", str(error))
        return
    rows: dict[str, TrainedRow] = dict(zip(_CONVERSATIONS, found, strict=True))
    for item, syntax, name in items:
        if name == "reasoning" and rows[name] == plain:
            yield CheckItem(item, "not judged", "the chat template leaves reasoning out, in training as well")
            continue
        yield same_rendering(wire, item, syntax, _CONVERSATIONS[name], tools, rows[name])
