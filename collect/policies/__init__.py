"""Who decides: models, scripts, people and recordings, all behind `gumshoe.protocols.Policy`."""

from gumshoe.collect.policies.registry import make_policy

__all__ = ["make_policy"]
