"""Which files Harbor's verifier takes from the agent, and which tests decide."""

from __future__ import annotations

from typing import Any

import pytest

from gumshoe.env.inside.harbor_verify import failing, is_kept, shadows
from gumshoe.env.verifier.harness_files import shadowing_paths

RULES: dict[str, Any] = {"gold": ["tests/helper.py"], "kept": ["data/answers.json"], "shadowed": ["pytest", "json"]}


@pytest.mark.parametrize(
    ("path", "is_new", "kept"),
    [
        ("shop/cart.py", False, False),
        ("shop/json.py", True, False),  # in a package, it stands in nobody's way
        ("json.py", True, True),
        ("json.py", False, False),
        ("pytest/__init__.py", True, True),
        ("src/pytest.cpython-312-x86_64-linux-gnu.so", True, True),
        ("tests/test_cart.py", False, True),
        ("tests/helper.py", False, False),  # the answer changes it
        ("data/answers.json", False, True),
        ("shop/conftest.py", True, True),
        ("setup.cfg", True, True),
        ("gumshoe_verdict.py", True, True),
        ("shop/evil.pth", True, True),
    ],
)
def test_which_files_are_not_taken_from_the_agent(path: str, is_new: bool, kept: bool) -> None:
    assert is_kept(path, is_new, RULES, {"shop"}) is kept


MODULES = ["pytest.py", "json.so", "pytest.cpython-312-x86_64-linux-gnu.so", "json.abi3.so", "a.py"]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("folder", ["", "src/", "shop/"])
def test_both_verifiers_agree_on_what_shadows_a_module(name: str, folder: str) -> None:
    path = f"{folder}{name}"
    present = {"shop/__init__.py", "src/mine.py", path}
    found = list(shadowing_paths({path: (None, b"")}, present))
    assert shadows(path, RULES["shadowed"], {"shop"}) is bool(found)
    assert bool(found) is (name != "a.py" and folder != "shop/")


def test_named_tests_decide() -> None:
    outcomes = {"t.py::a": "passed", "t.py::b": "skipped", "u.py::c": "failed"}
    assert list(failing(["t.py::a", "t.py::b", "t.py"], outcomes, True)) == ["t.py::b", "t.py"]
    assert list(failing(["t.py::a", "t.py::b", "t.py", "u.py", "gone.py"], outcomes, False)) == ["u.py", "gone.py"]
