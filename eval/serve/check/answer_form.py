"""Items about the form of answers: streaming, the length limit, token counts, the tokens themselves."""

from __future__ import annotations

from typing import Any

from gumshoe.eval.serve.check.verdict import CheckItem
from gumshoe.eval.serve.check.wire import Prompt, ServerReply, Wire
from gumshoe.records import ToolSchema

__all__ = ["length_stop", "sampled_tokens", "streaming", "token_counts"]

LIMIT = 5


def streaming(wire: Wire, ask: str, tools: tuple[ToolSchema, ...]) -> CheckItem:
    """The pieces of a stream, put together, equal the answer that comes in one piece."""
    item = "streaming"
    fields = {"tools": [tool.as_openai() for tool in tools], "max_tokens": 64}
    messages = [{"role": "user", "content": ask}]
    whole = wire.chat(messages, **fields)
    status, pieces, done = wire.stream(messages, **fields)
    if status != 200:
        refused = ServerReply(status, {}).refused
        return CheckItem(item, "not supported" if refused else "wrong", f"HTTP {status}")
    text, calls, finish = _joined(pieces)
    problems = [
        ("the text differs from the answer in one piece", text.strip() != whole.text.strip()),
        (
            "the calls differ from those in one piece",
            calls != [(c.get("name"), c.get("arguments")) for c in whole.calls],
        ),
        (f"finish_reason is {finish!r}, in one piece {whole.finish!r}", finish != whole.finish),
    ]
    ending = "" if done else ", and no [DONE] behind them"
    wrong = [problem for problem, is_so in problems if is_so]
    return (
        CheckItem(item, "wrong", "; ".join(wrong)) if wrong else CheckItem(item, "ok", f"{len(pieces)} pieces{ending}")
    )


def _joined(pieces: list[dict[str, Any]]) -> tuple[str, list[tuple[str, str]], str | None]:
    """Text, calls (name, arguments) and finish reason of a stream."""
    text = ""
    calls: dict[int, tuple[str, str]] = {}
    finish: str | None = None
    for choice in (choice for piece in pieces for choice in (piece.get("choices") or ())[:1]):
        delta = choice.get("delta") or {}
        text += delta.get("content") or ""
        finish = choice.get("finish_reason") or finish
        for part in delta.get("tool_calls") or ():
            name, arguments = calls.get(part["index"], ("", ""))
            function = part.get("function") or {}
            calls[part["index"]] = (name + (function.get("name") or ""), arguments + (function.get("arguments") or ""))
    return text, [calls[index] for index in sorted(calls)], finish


def length_stop(wire: Wire, ask: str) -> CheckItem:
    """An answer that is cut off says so, and is as long as was allowed."""
    item = "stop at length"
    answer = wire.chat([{"role": "user", "content": ask}], max_tokens=LIMIT)
    if answer.status != 200:
        return CheckItem(item, "wrong", f"HTTP {answer.status}: {answer.said}")
    made = answer.usage.get("completion_tokens", 0)
    if answer.finish == "stop" and made <= LIMIT:
        return CheckItem(item, "not judged", f"the model had ended after {made} tokens")
    if answer.finish != "length" or made != LIMIT:
        return CheckItem(item, "wrong", f"finish_reason {answer.finish!r} after {made} tokens of {LIMIT}")
    return CheckItem(item, "ok", f"cut after {made} tokens")


def token_counts(wire: Wire, ask: str, tools: tuple[ToolSchema, ...]) -> CheckItem:
    """Counts are given, add up, and grow with the conversation."""
    item = "token counts"
    sent = [tool.as_openai() for tool in tools]
    answer = wire.chat([{"role": "user", "content": ask}], tools=sent, max_tokens=LIMIT)
    usage = answer.usage
    if not {"prompt_tokens", "completion_tokens", "total_tokens"} <= usage.keys():
        return CheckItem(item, "wrong", f"usage is {usage or 'missing'}")
    if usage["prompt_tokens"] + usage["completion_tokens"] != usage["total_tokens"]:
        return CheckItem(item, "wrong", f"the parts do not add up: {usage}")
    longer = wire.prompt([{"role": "user", "content": f"{ask} {ask}"}], sent)
    if not isinstance(longer, Prompt) or longer.count <= usage["prompt_tokens"]:
        return CheckItem(item, "wrong", "a longer conversation has no more tokens")
    return CheckItem(item, "ok", f"{usage['prompt_tokens']} + {usage['completion_tokens']}")


def sampled_tokens(wire: Wire, ask: str) -> CheckItem:
    """The ids of the sampled tokens and their log probabilities, which training as sampled needs."""
    item = "sampled tokens"
    fields = {"return_token_ids": True, "logprobs": True, "max_tokens": LIMIT}
    answer = wire.chat([{"role": "user", "content": ask}], **fields)
    if answer.status != 200:
        return CheckItem(item, "not supported" if answer.refused else "wrong", f"HTTP {answer.status}: {answer.said}")
    ids, logprobs = answer.choice.get("token_ids"), answer.choice.get("logprobs")
    entries = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(ids, list) or not isinstance(entries, list):
        missing = "token ids" if not isinstance(ids, list) else "log probabilities"
        return CheckItem(item, "not supported", f"the answer has no {missing}")
    made = answer.usage.get("completion_tokens")
    if not len(ids) == len(entries) == made:
        return CheckItem(item, "wrong", f"{len(ids)} ids and {len(entries)} log probabilities for {made} tokens")
    return CheckItem(item, "ok", f"{len(ids)} ids with log probabilities")
