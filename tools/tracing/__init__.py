"""The host's side of `trace`: recorded calls, how they differ, and what a model reads of them."""
