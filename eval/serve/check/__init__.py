"""Checks over HTTP whether a server does what Gumshoe needs."""

from gumshoe.eval.serve.check.run import check_server
from gumshoe.eval.serve.check.verdict import CheckItem

__all__ = ["CheckItem", "check_server"]
