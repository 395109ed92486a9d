"""Whether a server does over the wire what Gumshoe needs of it."""

from gumshoe.eval.serve.check.run import check_server
from gumshoe.eval.serve.check.verdict import Verdict

__all__ = ["Verdict", "check_server"]
