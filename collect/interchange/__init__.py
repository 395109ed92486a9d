"""Trajectories of other formats in, ours out: ATIF, SWE-agent's .traj, plain chat messages."""

from gumshoe.collect.interchange.atif import from_atif, to_atif
from gumshoe.collect.interchange.messages import from_messages
from gumshoe.collect.interchange.swe_agent import from_swe_agent

__all__ = ["from_atif", "from_messages", "from_swe_agent", "to_atif"]
