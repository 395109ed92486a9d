"""A calculator for expressions such as "2(x + 1)^2 - max(3, y)"."""

from .evaluate import calculate
from .lexer import SyntaxFault

__all__ = ["SyntaxFault", "calculate"]
