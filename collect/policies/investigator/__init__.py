"""The investigator: a policy that knows neither the answer nor a language, and finds bugs by experiments."""

from gumshoe.collect.policies.investigator.policy import InvestigatorPolicy

__all__ = ["InvestigatorPolicy"]
