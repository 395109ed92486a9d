"""Episodes as OpenTelemetry spans, held by the SDK's own exporters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from test_interchange import eventful

from gumshoe.cli import main
from gumshoe.collect.interchange import export_spans, from_spans
from gumshoe.errors import DatasetError
from gumshoe.records import Provenance, Score, Trajectory


def episode() -> Trajectory:
    made = Provenance(gumshoe="0", python="3", sandbox="local", created_at="2026-11-22T08:00:00+00:00")
    return eventful().model_copy(update={"scores": (Score(name="resolved", value=1.0),), "provenance": made})


def exported(*trajectories: Trajectory) -> tuple[ReadableSpan, ...]:
    exporter = InMemorySpanExporter()
    assert export_spans(trajectories, exporter) == len(trajectories)
    return exporter.get_finished_spans()


def test_the_spans_follow_the_conventions() -> None:
    agent, first, view, run, second = exported(episode())
    assert [span.name for span in (agent, first, view, run, second)] == [
        *("invoke_agent debug", "chat m-1", "execute_tool view", "execute_tool eval", "chat m-1")
    ]
    assert agent.context is not None
    assert agent.attributes is not None
    assert first.attributes is not None
    assert view.attributes is not None
    assert run.attributes is not None
    for span in (first, view, run, second):
        assert span.parent is not None
        assert (span.parent.span_id, span.parent.trace_id) == (agent.context.span_id, agent.context.trace_id)
    assert agent.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert agent.attributes["gen_ai.conversation.id"] == "t#0.1"
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_calls",)
    assert (first.attributes["gen_ai.usage.input_tokens"], first.attributes["gen_ai.usage.output_tokens"]) == (5, 2)
    (answer,) = json.loads(str(first.attributes["gen_ai.output.messages"]))
    assert [part["type"] for part in answer["parts"]] == ["reasoning", "text", "tool_call", "tool_call"]
    assert json.loads(str(run.attributes["gen_ai.tool.call.arguments"])) == {"x": [1, None, "é"]}
    assert run.attributes["gen_ai.tool.call.result"] == "1 failed"
    assert (view.status.status_code, view.attributes["error.type"]) == (StatusCode.ERROR, "unreadable_call")
    assert run.status.status_code is StatusCode.UNSET
    (score,) = agent.events
    assert score.attributes is not None
    assert (score.name, score.attributes["gen_ai.evaluation.score.value"]) == ("gen_ai.evaluation.result", 1.0)


def test_the_times_are_those_of_the_episode() -> None:
    """It was written down at eight, when its last step, begun after 1 s, had taken 2 s."""
    agent, first, _, run, _ = exported(episode())
    assert agent.start_time
    assert agent.end_time
    assert first.start_time
    assert first.end_time
    assert agent.end_time - agent.start_time == 3_000_000_000
    assert first.start_time - agent.start_time == 1_000_000_000
    assert first.end_time - first.start_time == 250_000_000
    assert run.start_time == first.end_time
    assert agent.end_time == 1_795_334_400_000_000_000


def test_an_episode_has_the_same_ids_whenever_it_is_exported() -> None:
    ids = [[span.context.span_id for span in exported(episode()) if span.context] for _ in range(2)]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 5
    other = exported(episode().model_copy(update={"id": "u#0.1"}))
    assert not set(ids[0]) & {span.context.span_id for span in other if span.context}


class Collector(BaseHTTPRequestHandler):
    bodies: list[dict[str, Any]]
    status = 200

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.bodies.append(json.loads(data))
        self.send_response(self.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def collector() -> Iterator[tuple[type[Collector], str]]:
    kind = type("OneCollector", (Collector,), {"bodies": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield kind, f"http://127.0.0.1:{server.server_port}/v1/traces"
        server.shutdown()


def run_folder(folder: Path) -> Path:
    folder.mkdir()
    (folder / "trajectories.jsonl").write_text(episode().model_dump_json() + "\n", encoding="utf-8")
    return folder


def test_spans_are_sent_to_a_collector(collector: tuple[type[Collector], str], tmp_path: Path) -> None:
    kind, url = collector
    assert main(["convert", str(run_folder(tmp_path / "run")), "--to", "otel", "--endpoint", url]) == 0
    assert list(from_spans(kind.bodies, name="sent")) == [episode()]


def test_a_collector_that_refuses_is_one_line(
    collector: tuple[type[Collector], str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    kind, url = collector
    kind.status = 400
    assert main(["convert", str(run_folder(tmp_path / "run")), "--to", "otel", "--endpoint", url]) == 2
    assert "gumshoe convert: the spans of t#0.1 were not accepted" in capfd.readouterr().err


FOREIGN = [
    {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "aa",
                                "startTimeUnixNano": at,
                                "attributes": [
                                    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                                    {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}},
                                    {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(sent)}},
                                    {"key": "gen_ai.output.messages", "value": {"stringValue": json.dumps(answer)}},
                                ],
                            }
                        ]
                    }
                ]
            }
        ]
    }
    for at, sent, answer in [
        (
            "2",
            [
                {"role": "user", "parts": [{"type": "text", "content": "Add."}]},
                {
                    "role": "assistant",
                    "parts": [{"type": "tool_call", "id": "1", "name": "add", "arguments": {"a": 1}}],
                },
                {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": {"sum": 2}}]},
            ],
            [{"role": "assistant", "parts": [{"type": "text", "content": "It is 2."}]}],
        ),
        ("1", [{"role": "user", "parts": [{"type": "text", "content": "Add."}]}], []),
    ]
]


def test_a_trace_of_another_agent_is_its_last_request() -> None:
    (one,) = from_spans(FOREIGN, name="theirs")
    assert (one.task.id, one.task.source) == ("aa", "otel")
    assert [message.content for message in one.messages] == ["Add.", "", '{"sum":2}', "It is 2."]
    assert [step.completion.text for step in one.steps] == ["", "It is 2."]


@pytest.mark.parametrize("lines", [[], [{"resourceSpans": []}], [{"resourceSpans": [3]}], [{"resourceSpans": 3}]])
def test_what_holds_no_spans_is_told(lines: list[Any]) -> None:
    with pytest.raises(DatasetError, match=r"x (is not OTLP/JSON|holds no spans)"):
        list(from_spans(lines, name="x"))
