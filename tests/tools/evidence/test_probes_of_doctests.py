"""Findings about failing doctests, of which the runner gives a text alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gumshoe.records import Check, ContextPack, StopProbe
from gumshoe.tools.evidence.checks import check_probes
from support.tools.tool_bench import TOOLS, Bench, fact, report


@pytest.fixture
def open_doctests(open_bench: Callable[..., Bench], project: Path) -> Callable[[str], Bench]:
    """Opens a project of one module, whose doctests are its tests."""

    def opened(code: str) -> Bench:
        (project / "test_cart.py").unlink()
        (project / "shop.py").write_text(code)
        return open_bench(tools=TOOLS, entrypoint=("python", "-m", "pytest", "-q", "--doctest-modules"))

    return opened


def test_a_doctest_fails_where_its_text_says(open_doctests: Callable[[str], Bench]) -> None:
    bench = open_doctests(
        "def half(price):\n    return price.no_such\n\n\n"
        'def shown():\n    """Shown.\n\n    >>> half(4)\n    2\n    """\n'
    )
    bench.call("eval")
    quote = "AttributeError: 'int' object has no attribute 'no_such'"
    pack = ContextPack.model_validate(report(bench, quote).data["context_pack"])
    (found,) = pack.findings
    assert isinstance(found.probe, StopProbe)
    assert (found.probe.line, found.check and found.check.status) == (2, "confirmed")
    moved = found.probe.model_copy(update={"line": 6})
    assert check_probes(bench.workspace, [moved])[0].status == "contradicted"


def test_a_doctest_with_another_result_fails_at_its_example(open_doctests: Callable[[str], Bench]) -> None:
    bench = open_doctests(
        'def half(price):\n    """Half of it.\n\n    >>> half(4)\n    2\n    >>> half(None)\n    """\n'
        "    return price and price / 4\n"
    )
    bench.call("eval")
    probe = fact(bench, "Expected: 2 Got: 1.0").probe
    assert (probe.path, probe.line) == ("shop.py", 4)
    assert [check.status for check in check_probes(bench.workspace, [probe])] == ["confirmed"]
    wrong = [probe.model_copy(update=other) for other in ({"line": 6}, {"value": "Expected: 3"})]
    assert [check.status for check in check_probes(bench.workspace, wrong)] == ["contradicted"] * 2


def test_a_doctest_of_a_text_file_is_confirmed(open_bench: Callable[..., Bench], project: Path) -> None:
    (project / "test_cart.py").unlink()
    (project / "shop.py").write_text("def half(price):\n    return price / 4\n")
    (project / "README.rst").write_text("It's a shop.\n\n>>> from shop import half\n>>> half(4)\n2.0\n")
    bench = open_bench(tools=TOOLS, entrypoint=("python", "-m", "pytest", "-q", "--doctest-glob=*.rst"))
    bench.call("eval")
    pack = ContextPack.model_validate(report(bench, "Expected").data["context_pack"])
    (found,) = pack.findings
    assert isinstance(found.probe, StopProbe)
    assert (found.probe.path, found.probe.line) == ("README.rst", 4)
    assert found.check == Check(status="confirmed", telling=True)
    wrong = [
        found.probe.model_copy(update=other) for other in ({"line": 3}, {"value": "Expected: 3"}, {"path": "R.rst"})
    ]
    assert [check.status for check in check_probes(bench.workspace, wrong)] == ["contradicted"] * 3
