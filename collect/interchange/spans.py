"""Episodes as OpenTelemetry spans, following the semantic conventions for generative AI.

One trace per episode: `invoke_agent` with the whole conversation, and below it one `chat` for each answer of the model
and one `execute_tool` for each call. The SDK's exporters write them to a file (OTLP as JSON) or send them to a
collector. What the conventions have no attribute for is in `gumshoe.trajectory`, so that a trajectory comes back as it
was.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gumshoe import __version__
from gumshoe.collect.interchange.clock import start_of
from gumshoe.collect.interchange.messages import from_messages
from gumshoe.collect.interchange.reading import reading
from gumshoe.collect.interchange.shell import fill_shell, shell_of
from gumshoe.errors import DatasetError
from gumshoe.records import Message, Observation, Step, ToolCall, Trajectory
from gumshoe.storage import parse_json

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import Span
    from opentelemetry.sdk.trace.export import SpanExporter

__all__ = ["export_spans", "from_spans"]

OURS = "gumshoe.trajectory"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SECOND_NS = 1_000_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def export_spans(trajectories: Iterable[Trajectory], exporter: SpanExporter) -> int:
    """Hands each episode's spans to an exporter of the SDK, and shuts it down. Returns the number of episodes.

    An episode has the same ids every time it is exported.

    Raises:
        ModuleNotFoundError: the extra `otel` is not installed.
        DatasetError: the exporter did not accept an episode.
    """
    from opentelemetry.sdk.trace.export import SpanExportResult

    count = 0
    try:
        for trajectory in trajectories:
            if exporter.export(_spans(trajectory)) is not SpanExportResult.SUCCESS:
                raise DatasetError(f"the spans of {trajectory.id} were not accepted: see the log")
            count += 1
    finally:
        exporter.shutdown()
    return count


def _spans(trajectory: Trajectory) -> Sequence[Span]:
    """The spans of an episode, the agent's first."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Span, SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON
    from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

    # Episodes of two arms may have one id. Scores may come later.
    identity = hashlib.sha256(trajectory.model_dump_json(exclude={"scores"}).encode()).hexdigest()

    class Ids(RandomIdGenerator):
        """Ids that follow from the trajectory's content and the order of the spans."""

        count = 0

        def generate_trace_id(self) -> int:
            return _number(identity, 16)

        def generate_span_id(self) -> int:
            self.count += 1
            return _number(f"{identity} {self.count}", 8)

    provider = TracerProvider(
        resource=Resource({"service.name": "gumshoe", "service.version": __version__}),
        id_generator=Ids(),
        sampler=ALWAYS_ON,
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_span_attributes=SpanLimits.UNSET, max_events=SpanLimits.UNSET),
    )
    tracer = provider.get_tracer("gumshoe", __version__)
    start = max(start_of(trajectory) or EPOCH, EPOCH)
    made: list[Span] = []

    def span(name: str, kind: SpanKind, begin_s: float, end_s: float, attributes: Mapping[str, Any]) -> Span:
        root = set_span_in_context(made[0]) if made else None
        begin = _nanoseconds(start, begin_s)
        new = tracer.start_span(name, context=root, kind=kind, attributes=attributes, start_time=begin)
        assert isinstance(new, Span)
        made.append(new)
        ends.append(_nanoseconds(start, max(begin_s, end_s)))
        return new

    ends: list[int] = []
    last = max((step.started_at + step.duration_s for step in trajectory.steps), default=0.0)
    agent = span(f"invoke_agent {trajectory.policy.agent}", SpanKind.INTERNAL, 0.0, last, _agent(trajectory))
    for score in trajectory.scores:
        value = {} if score.value is None else {"gen_ai.evaluation.score.value": score.value}
        named = {"gen_ai.evaluation.name": score.name, "gen_ai.evaluation.explanation": score.explanation}
        agent.add_event("gen_ai.evaluation.result", {**named, **value}, timestamp=ends[0])
    for step in trajectory.steps:
        thought = step.started_at + step.completion.usage.duration_s
        model = step.completion.model or trajectory.policy.model
        span(f"chat {model}".rstrip(), SpanKind.CLIENT, step.started_at, thought, _chat(trajectory, step))
        for call, seen in zip(step.tool_calls, step.observations, strict=False):
            tool = span(
                f"execute_tool {call.name}", SpanKind.INTERNAL, thought, thought + seen.duration_s, _tool(call, seen)
            )
            thought += seen.duration_s
            if seen.failure is not None:
                tool.set_attribute("error.type", seen.failure.kind)
                tool.set_status(StatusCode.ERROR, seen.failure.message)
    for one, end in zip(made, ends, strict=True):
        one.end(end)
    return made


def _agent(trajectory: Trajectory) -> dict[str, Any]:
    last = max((at for at, message in enumerate(trajectory.messages) if message.role == "assistant"), default=None)
    cut = len(trajectory.messages) if last is None else last
    usage = trajectory.usage
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": trajectory.policy.agent,
        "gen_ai.agent.version": trajectory.provenance.gumshoe,
        "gen_ai.conversation.id": trajectory.id,
        "gen_ai.provider.name": trajectory.policy.kind,
        "gen_ai.request.model": trajectory.policy.model,
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.tool.definitions": _json([{"type": "function", **tool.model_dump()} for tool in trajectory.tools]),
        INPUT: _json([_spoken(message) for message in trajectory.messages[:cut]]),
        OUTPUT: _json([_spoken(message) for message in trajectory.messages[cut:]]),
        OURS: _json(shell_of(trajectory)),
    }


def _chat(trajectory: Trajectory, step: Step) -> dict[str, Any]:
    completion = step.completion
    answer = {**_spoken(completion.as_message()), "finish_reason": completion.finish_reason}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": trajectory.policy.kind,
        "gen_ai.conversation.id": trajectory.id,
        "gen_ai.request.model": trajectory.policy.model,
        "gen_ai.response.model": completion.model,
        "gen_ai.response.finish_reasons": [completion.finish_reason],
        "gen_ai.usage.input_tokens": completion.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": completion.usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": completion.usage.cached_tokens,
        OUTPUT: _json([answer]),
        "gumshoe.step": step.index,
        **({"gumshoe.decision": step.decision.value} if step.decision else {}),
    }


def _tool(call: ToolCall, seen: Observation) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.arguments": _json(call.arguments),
        "gen_ai.tool.call.result": seen.text,
    }


def _spoken(message: Message) -> dict[str, Any]:
    """A message in the conventions' parts."""
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        return {"role": "tool", "parts": [part]}
    thought = [] if message.reasoning is None else [{"type": "reasoning", "content": message.reasoning}]
    calls = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return {"role": message.role, "parts": [*thought, {"type": "text", "content": message.content}, *calls]}


def from_spans(lines: Iterable[Mapping[str, Any]], *, name: str) -> Iterator[Trajectory]:
    """The trajectories in OTLP/JSON: one for each trace, in their order.

    For a trace from elsewhere, the conversation is that of the last span that holds one: the agent's, or the last
    request to a model.

    Raises:
        DatasetError: it is not OTLP/JSON, or a trace holds no messages.
    """
    with reading(f"{name} is not OTLP/JSON: it"):
        traces = _traces(lines)
    if not traces:
        raise DatasetError(f"{name} holds no spans")
    for trace, spans in traces.items():
        with reading(f"{name}: trace {trace}"):
            found = _read(trace, spans)
        yield found


def _traces(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The attributes of each trace's spans, in the order in which the spans begin."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for line in lines:
        for resource in line.get("resourceSpans") or ():
            for scope in resource.get("scopeSpans") or ():
                for span in scope.get("spans") or ():
                    attributes = {entry["key"]: _value(entry["value"]) for entry in span.get("attributes") or ()}
                    found.setdefault(span["traceId"], []).append((int(span.get("startTimeUnixNano", 0)), attributes))
    return {
        trace: [attributes for _, attributes in sorted(spans, key=lambda span: span[0])]
        for trace, spans in found.items()
    }


def _read(trace: str, spans: Sequence[Mapping[str, Any]]) -> Trajectory:
    whole = next((span for span in spans if OURS in span), None)
    if whole is None:
        holding = [span for span in spans if INPUT in span]
        if not holding:
            raise DatasetError(f"trace {trace} holds no messages: no span has {INPUT}")
        whole = next((s for s in holding if s.get("gen_ai.operation.name") == "invoke_agent"), holding[-1])
    sent = [*_parsed(whole.get(INPUT)), *_parsed(whole.get(OUTPUT))]
    messages = [message for one in sent for message in _heard(one)]
    if OURS in whole:
        return fill_shell(parse_json(whole[OURS]), messages)
    name = str(whole.get("gen_ai.conversation.id") or trace)
    tools = _parsed(whole.get("gen_ai.tool.definitions"))
    return from_messages([message.as_openai() for message in messages], tools, name=name, source="otel")


def _heard(sent: Mapping[str, Any]) -> Iterator[Message]:
    parts = sent["parts"]
    if sent["role"] == "tool":
        for part in parts:
            said = part.get("response", part.get("result"))
            yield Message(role="tool", content=said if isinstance(said, str) else _json(said), tool_call_id=part["id"])
        return
    texts = [part["content"] for part in parts if part["type"] == "text"]
    thoughts = [part["content"] for part in parts if part["type"] == "reasoning"]
    calls = tuple(
        ToolCall(id=part.get("id") or "", name=part["name"], arguments=part.get("arguments") or {})
        for part in parts
        if part["type"] == "tool_call"
    )
    yield Message(
        role=sent["role"],
        content="\n".join(texts),
        reasoning="\n".join(thoughts) if thoughts else None,
        tool_calls=calls,
    )


def _parsed(value: Any) -> list[Any]:
    """A list that an attribute holds, as JSON text or structured."""
    return list(parse_json(value) if isinstance(value, str) else value or ())


def _value(sent: Mapping[str, Any]) -> Any:
    """An attribute's value, out of OTLP's wrapping."""
    for kind, value in sent.items():
        if kind == "arrayValue":
            return [_value(item) for item in value.get("values") or ()]
        if kind == "kvlistValue":
            return {entry["key"]: _value(entry["value"]) for entry in value.get("values") or ()}
        return int(value) if kind == "intValue" else value
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _number(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:size], "big") or 1


def _nanoseconds(start: datetime.datetime, seconds: float) -> int:
    return ((start - EPOCH) // datetime.timedelta(microseconds=1)) * 1000 + round(seconds * SECOND_NS)
