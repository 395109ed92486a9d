"""The copy of the viewer that `gumshoe eval` writes beside its results."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path

from gumshoe.eval.view.static import write_beside
from support.eval.evaluation_samples import write_evaluation


def test_an_evaluation_is_named_by_a_relative_path(tmp_path: Path) -> None:
    with chdir(tmp_path):
        write_evaluation(Path("evaluation"))
        page = write_beside(Path("evaluation"), {})
        assert page == Path("evaluation/view/index.html")
        assert page.is_file()
