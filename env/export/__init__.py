"""Tasks for others' runners: Harbor, verifiers, the official SWE-bench harness."""

from gumshoe.env.export.export import TARGETS, export_tasks

__all__ = ["TARGETS", "export_tasks"]
