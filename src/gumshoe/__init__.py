"""Gumshoe: collect debugging traces, train an info-seeking model on them, measure what it is worth."""

__version__ = "0.1.0"
__all__ = ["__version__"]
