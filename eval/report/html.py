"""The report as one HTML file that loads nothing and runs no script."""

from __future__ import annotations

from pathlib import Path

import jinja2
from markupsafe import Markup

from gumshoe.collect.store import write_whole
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.report.charts import LineChart, line_chart
from gumshoe.eval.report.page import Page, build_page
from gumshoe.eval.report.training_log import read_losses
from gumshoe.eval.run import Evaluation

__all__ = ["loss_curve", "render", "write_report"]

HERE = Path(__file__).parent


def loss_curve(config: EvalConfig) -> LineChart | None:
    """The losses that the config's training log holds; None without one. Raises DatasetError if it cannot be read."""
    if config.training_log is None:
        return None
    return line_chart(read_losses(Path(config.fill(config.training_log))))


def write_report(evaluation: Evaluation, path: Path, losses: LineChart | None = None) -> None:
    """Writes the page of an evaluation."""
    write_whole(path, render(build_page(evaluation, losses)))


def render(page: Page) -> str:
    """The page as HTML. Everything that comes from tasks and traces is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    style = Markup((HERE / "style.css").read_text(encoding="utf-8"))
    return environment.get_template("page.jinja").render(page=page, style=style)
