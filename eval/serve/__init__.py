"""Model folders behind an OpenAI-compatible endpoint."""

from gumshoe.eval.serve.server import ModelServer

__all__ = ["ModelServer"]
