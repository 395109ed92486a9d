"""Shortest paths on maps made of characters."""
