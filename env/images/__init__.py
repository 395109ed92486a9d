"""Images for rows of SWE-bench, laid out as the official ones, made from git histories and a package index."""

from gumshoe.env.images.build import ImageBuilder

__all__ = ["ImageBuilder"]
