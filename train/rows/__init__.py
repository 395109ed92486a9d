"""Rows of a dataset as tokens: read, checked, rendered, and what of them trains."""
