"""The report: one HTML page and a terminal table."""

from gumshoe.eval.report.html import loss_curve, write_report
from gumshoe.eval.report.table import print_table

__all__ = ["loss_curve", "print_table", "write_report"]
