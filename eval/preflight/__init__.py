"""What is checked before an evaluation runs anything."""

from gumshoe.eval.preflight.prepare import Prepared, prepare

__all__ = ["Prepared", "prepare"]
