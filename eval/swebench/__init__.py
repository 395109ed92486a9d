"""The official SWE-bench harness: its predictions, its rows, running it, reading its report."""

from gumshoe.eval.swebench.harness import HarnessReport, check_tools, run_harness
from gumshoe.eval.swebench.predictions import Prediction, read_predictions, write_predictions

__all__ = ["HarnessReport", "Prediction", "check_tools", "read_predictions", "run_harness", "write_predictions"]
