"""Where tasks come from. Each source yields a `Task`, what the agent may know, and apart from it an `Oracle`."""

from gumshoe.env.tasks.apply import apply_patch
from gumshoe.env.tasks.gold import gold_lines
from gumshoe.env.tasks.load import load_tasks

__all__ = ["apply_patch", "gold_lines", "load_tasks"]
