"""Tasks for the official SWE-bench harness."""

from gumshoe.env.export.swebench import export_tasks

__all__ = ["export_tasks"]
