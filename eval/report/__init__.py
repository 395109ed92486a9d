"""The report: one HTML page and a terminal table."""

from gumshoe.eval.report.html import write_report
from gumshoe.eval.report.table import print_table

__all__ = ["print_table", "write_report"]
