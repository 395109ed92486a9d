"""Trajectories of other formats in, ours out: ATIF, the hub's sessions, OpenTelemetry; SWE-agent and messages in."""

from gumshoe.collect.interchange.atif import all_from_atif, from_atif, to_atif
from gumshoe.collect.interchange.messages import from_messages
from gumshoe.collect.interchange.mini_swe_agent import from_mini_swe_agent
from gumshoe.collect.interchange.session import from_session, to_session
from gumshoe.collect.interchange.spans import export_spans, from_spans
from gumshoe.collect.interchange.swe_agent import from_swe_agent

__all__ = [
    "all_from_atif",
    "export_spans",
    "from_atif",
    "from_messages",
    "from_mini_swe_agent",
    "from_session",
    "from_spans",
    "from_swe_agent",
    "to_atif",
    "to_session",
]
