"""The official SWE-bench harness: its predictions, its rows, running it, reading its report."""

from gumshoe.eval.swebench.harness import (
    HarnessReport,
    Prediction,
    check_tools,
    read_predictions,
    run_harness,
    write_predictions,
)

__all__ = ["HarnessReport", "Prediction", "check_tools", "read_predictions", "run_harness", "write_predictions"]
