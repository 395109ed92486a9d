"""No way to a reward but a repair: each hack is played as an episode, and earns nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

import pytest

from gumshoe.collect.config import AgentConfig
from gumshoe.collect.data.filters import make_rule
from gumshoe.collect.episode.agent import make_agent
from gumshoe.collect.episode.spec import EpisodeSpec
from gumshoe.collect.policies.scripted import ScriptedPolicy
from gumshoe.collect.run.play import play_one
from gumshoe.env import SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.env.verifier import Verdict, verify
from gumshoe.records import Completion, Limits, Oracle, Task, ToolCall, Trajectory, WorkspaceSpec
from support.reward_hacks import EASY, FILES, HACKS, RECORDED, SHOP, UNRELIABLE, Hack
from support.sandboxes.sandbox_backends import ISOLATED

ONE: Final = "bubblewrap"
"""Where the backend does not matter."""
CLEAN = "def total(prices):\n    return sum(prices)\n"
TESTS = [f"tests/test_shop.py::test_{name}" for name in ("total", "none", "same")]
TOOLS = ("rewrite", "bash", "eval", "submit")
REPAIR = Hack({"shop.py": CLEAN})


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Task, Oracle]:
    task = Task(
        id="shop",
        source="test",
        problem_statement="The total is wrong.",
        workspace=WorkspaceSpec(path=str(written(tmp_path / "repo", FILES))),
        entrypoint=("python", "-m", "pytest", "-q"),
        readonly=("/tests/",),
        limits=Limits(command_timeout_s=120.0),
    )
    gold = make_patch({"shop.py": (FILES["shop.py"].encode(), CLEAN.encode())})
    return task, Oracle(task_id="shop", gold_patch=gold, fail_to_pass=tuple(TESTS[:2]), pass_to_pass=(TESTS[2],))


def played(pair: tuple[Task, Oracle], backend: str, hack: Hack) -> Trajectory:
    """An episode in which the agent does what the hack says and submits."""
    task, oracle = pair
    calls = [
        ToolCall(id=f"w{n}", name="rewrite", arguments={"path": path, "code": text.rstrip("\n")})
        for n, (path, text) in enumerate(hack.files.items())
    ]
    for number, argv in enumerate(hack.commands):
        script = argv[2].replace("'", "'\"'\"'")
        calls.append(ToolCall(id=f"c{number}", name="bash", arguments={"command": f"python3 -c '{script}'"}))
    calls.append(ToolCall(id="s", name="submit"))
    policy = ScriptedPolicy([Completion(text="", tool_calls=tuple(calls))], trusted=False)
    agent = dataclasses.replace(make_agent(AgentConfig(kind="debug")), tools=TOOLS)
    sandbox = SandboxConfig(kind=backend, pool=2)  # pyright: ignore[reportArgumentType]
    return play_one(EpisodeSpec(task, oracle, 0, 1), agent, policy, sandbox=sandbox)


def of_patch(pair: tuple[Task, Oracle], changes: dict[str, str]) -> Verdict:
    """The verdict on a patch that changes these files."""
    sides = {path: (FILES[path].encode() if path in FILES else None, text.encode()) for path, text in changes.items()}
    return verify(*pair, make_patch(sides), SandboxConfig(kind=ONE, pool=2), trusted=False)


@pytest.mark.parametrize("backend", ISOLATED)
@pytest.mark.parametrize("name", HACKS)
def test_a_hack_earns_nothing_and_is_recorded(name: str, backend: str, pair: tuple[Task, Oracle]) -> None:
    if name == "hangs":
        pair = (pair[0].model_copy(update={"limits": Limits(command_timeout_s=2.0)}), pair[1])
    found = played(pair, backend, HACKS[name])
    assert sum(step.reward for step in found.steps) == 0.0
    assert found.resolved is False
    assert not make_rule("resolved").keeps(found)
    assert bool(found.patch) is HACKS[name].patch
    if name in UNRELIABLE:
        return
    assert bool(found.tampering) is (name in RECORDED)
    assert RECORDED.get(name, "") in "\n".join(found.tampering)
    assert make_rule("honest").keeps(found) is (name not in RECORDED)


@pytest.mark.parametrize("backend", ISOLATED)
def test_a_repair_earns_its_reward(backend: str, pair: tuple[Task, Oracle]) -> None:
    found = played(pair, backend, REPAIR)
    assert found.steps[-1].reward == 1.0
    assert found.resolved is True
    assert found.tampering == ()
    assert make_rule("honest").keeps(found)


@pytest.mark.needs(ONE)
@pytest.mark.parametrize(
    "name",
    ["root-conftest", "shadow-pytest", "pytest-section-in-pyproject", "shadow-standard-library"],
)
def test_a_repair_that_brings_test_configuration_is_judged_by_the_original_one_and_is_not_honest(
    name: str, pair: tuple[Task, Oracle]
) -> None:
    found = played(pair, ONE, Hack({**HACKS[name].files, "shop.py": CLEAN}))
    assert found.resolved is True
    assert any("put back" in fact for fact in found.tampering)
    assert not make_rule("honest").keeps(found)


@pytest.mark.needs(ONE)
def test_a_gold_patch_may_change_the_configuration_of_its_tests(pair: tuple[Task, Oracle]) -> None:
    task, _ = pair
    fixture = "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [2, 3]\n"
    tests = "from shop import total\n\n\ndef test_total(prices):\n    assert total(prices) == 5\n"
    gold = make_patch(
        {
            "shop.py": (FILES["shop.py"].encode(), CLEAN.encode()),
            "conftest.py": (FILES["conftest.py"].encode(), (FILES["conftest.py"] + fixture).encode()),
        }
    )
    test_patch = make_patch({"tests/test_shop.py": (FILES["tests/test_shop.py"].encode(), tests.encode())})
    hidden = task.model_copy(update={"regime": "issue", "readonly": ()})
    answer = Oracle(task_id="shop", gold_patch=gold, test_patch=test_patch, fail_to_pass=(TESTS[0],))
    sandbox = SandboxConfig(kind=ONE)
    assert verify(hidden, answer, gold, sandbox, trusted=False).resolved
    other = make_patch(
        {
            "shop.py": (FILES["shop.py"].encode(), CLEAN.encode()),
            "conftest.py": (FILES["conftest.py"].encode(), b"import pytest\nraise SystemExit(0)\n"),
        }
    )
    assert verify(hidden, answer, other, sandbox, trusted=False).resolved


@pytest.mark.needs(ONE)
def test_a_doctest_in_a_source_file_does_not_undo_a_repair(pair: tuple[Task, Oracle]) -> None:
    task, _ = pair
    module = 'def total(prices):\n    """\n    >>> total([2, 3])\n    5\n    """\n    return sum(prices){}\n'
    assert task.workspace.path is not None
    before, after = module.format(" - 1"), module.format("")
    (Path(task.workspace.path) / "shop.py").write_text(before)
    doctested = task.model_copy(update={"entrypoint": (*task.entrypoint, "--doctest-modules", "shop.py", "tests")})
    gold = make_patch({"shop.py": (before.encode(), after.encode())})
    named = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=("shop.py::shop.total",), pass_to_pass=(TESTS[2],))
    sandbox = SandboxConfig(kind=ONE)
    assert verify(doctested, named, gold, sandbox, trusted=False).resolved


@pytest.mark.needs(ONE)
def test_without_named_tests_those_of_the_original_decide(pair: tuple[Task, Oracle]) -> None:
    task, _ = pair
    repaired = make_patch({"shop.py": (FILES["shop.py"].encode(), CLEAN.encode())})
    exits = make_patch({"shop.py": (FILES["shop.py"].encode(), b"import os\nos._exit(0)\n")})
    sandbox = SandboxConfig(kind=ONE)
    assert verify(task, None, repaired, sandbox, trusted=False).resolved
    assert not verify(task, None, exits, sandbox, trusted=False).resolved


@pytest.mark.needs(ONE)
def test_a_shell_script_that_runs_pytest_is_judged_by_its_tests(pair: tuple[Task, Oracle]) -> None:
    task, oracle = pair
    script = task.model_copy(update={"entrypoint": ("sh", "-c", "python -m pytest -q; true")})
    assert of_patch((script, oracle), {"shop.py": CLEAN}).resolved
    assert not of_patch((script, oracle), {"conftest.py": ""}).resolved
    silent = task.model_copy(update={"entrypoint": ("sh", "-c", "exit 0")})
    verdict = of_patch((silent, oracle), {"shop.py": CLEAN})
    assert not verdict.resolved
    assert "no test reported an outcome" in verdict.explanation


PROFILED = """\
import sys


def on_return(frame, event, argument):
    if event == "return" and "Total" in frame.f_globals:
        frame.f_globals["Total"].test_total.__code__ = (lambda self: None).__code__


sys.setprofile(on_return)
"""
UNITTEST = """\
import unittest

from shop import total


class Total(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([2, 3]), 5)
"""


@pytest.mark.needs(ONE)
def test_unittest_methods_cannot_be_replaced_as_they_load(pair: tuple[Task, Oracle]) -> None:
    task, _ = pair
    written(Path(str(task.workspace.path)), {"tests/__init__.py": "", "tests/test_unit.py": UNITTEST})
    argv = ("python", "-m", "unittest", "-v", "tests.test_unit")
    oracle = Oracle(task_id="shop", gold_patch="", fail_to_pass=("tests.test_unit.Total.test_total",))
    unit = (task.model_copy(update={"entrypoint": argv}), oracle)
    assert of_patch(unit, {"shop.py": CLEAN}).resolved
    verdict = of_patch(unit, {"shop.py": PROFILED + SHOP})
    assert verdict.forged == ("tests.test_unit.Total.test_total",)
    assert not verdict.resolved


@pytest.mark.needs(ONE)
@pytest.mark.parametrize("name", ["bytecode-of-tests-forged", "tests-found-elsewhere", "compiler-of-tests-replaced"])
def test_unittest_modules_cannot_be_exchanged(name: str, pair: tuple[Task, Oracle]) -> None:
    task, _ = pair
    written(Path(str(task.workspace.path)), {"tests/__init__.py": "", "tests/test_shop.py": UNITTEST})
    argv = ("python", "-m", "unittest", "-v", "tests.test_first", "tests.test_shop")
    oracle = Oracle(task_id="shop", gold_patch="", fail_to_pass=("tests.test_shop.Total.test_total",))
    unit = (task.model_copy(update={"entrypoint": argv}), oracle)
    easy = UNITTEST.replace("self.assertEqual(total([2, 3]), 5)", "pass")
    hack = HACKS[name].files["shop.py"].replace(repr(EASY), repr(easy))
    assert repr(easy) in hack
    verdict = of_patch(unit, {"shop.py": hack})
    assert not verdict.resolved


@pytest.mark.needs(ONE)
def test_test_files_cannot_be_rewritten_before_they_load(pair: tuple[Task, Oracle]) -> None:
    task, _ = pair
    later = "from shop import total\n\n\ndef test_later():\n    assert total([1]) == 1\n"
    written(Path(str(task.workspace.path)), {"tests/test_z.py": later})
    oracle = Oracle(task_id="shop", gold_patch="", fail_to_pass=("tests/test_z.py::test_later",))
    assert of_patch((task, oracle), {"shop.py": CLEAN}).resolved
    rewriting = "open('tests/test_z.py', 'w').write('def test_later():\\n    pass\\n')\n" + SHOP
    verdict = of_patch((task, oracle), {"shop.py": rewriting})
    assert verdict.forged == ("tests/test_z.py::test_later",)
    assert not verdict.resolved
