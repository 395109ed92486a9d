"""Tool calls between a model or a person and the functions that carry them out."""
