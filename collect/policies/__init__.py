"""Who decides: models, scripts, people and recordings, all behind `gumshoe.protocols.Policy`."""

from gumshoe.collect.policies.registry import close_policy, make_policy

__all__ = ["close_policy", "make_policy"]
