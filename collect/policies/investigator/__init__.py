"""The investigator: a policy that knows no answer and uses no language model, and finds bugs by experiments."""

from gumshoe.collect.policies.investigator.policy import InvestigatorPolicy

__all__ = ["InvestigatorPolicy"]
