"""Tasks for the official SWE-bench harness."""

from gumshoe.env.export.export import export_tasks

__all__ = ["export_tasks"]
