"""From run folders to a Hugging Face dataset."""

from gumshoe.collect.data.export.export import ExportResult, export_runs

__all__ = ["ExportResult", "export_runs"]
