"""Where tasks come from. Each source yields a `Task`, what the agent may know, and, separately, an `Oracle`."""

from gumshoe.env.tasks.load import load_tasks

__all__ = ["load_tasks"]
