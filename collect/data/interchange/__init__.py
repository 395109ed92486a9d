"""Trajectories in other formats: ATIF in and out; SWE-agent, mini-swe-agent and messages in."""
