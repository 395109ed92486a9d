"""Debugging by hand: what `gumshoe play` is made of."""
