"""Whether a server does over the wire what Gumshoe needs of it."""

from gumshoe.eval.serve.check.run import check_server
from gumshoe.eval.serve.check.verdict import CheckItem

__all__ = ["CheckItem", "check_server"]
