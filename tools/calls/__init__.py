"""Tool calls between a model and the functions that carry them out."""
