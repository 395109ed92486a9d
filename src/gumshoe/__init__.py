"""Gumshoe: collect debugging traces, train an info-seeking model on them, measure how much it helps."""

__version__ = "0.1.0"
__all__ = ["__version__"]
