"""Commands of `gumshoe` that live in train."""
