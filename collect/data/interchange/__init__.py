"""Trajectories in other formats: ATIF in and out; SWE-agent, mini-swe-agent and messages in."""

from gumshoe.collect.data.interchange.atif import all_from_atif, from_atif, to_atif
from gumshoe.collect.data.interchange.messages import from_messages
from gumshoe.collect.data.interchange.swe_agent import from_mini_swe_agent, from_swe_agent

__all__ = [
    "all_from_atif",
    "from_atif",
    "from_messages",
    "from_mini_swe_agent",
    "from_swe_agent",
    "to_atif",
]
