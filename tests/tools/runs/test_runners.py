"""All tools of a session on projects whose tests are run as those of Django and sympy are, by tox, and with plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gumshoe.env import DebugEnv, SandboxConfig
from gumshoe.env.diff import make_patch
from gumshoe.records import Limits, Oracle, ToolCall
from support.folder_tasks import PYTEST, folder_task
from support.runner_projects import BUGGY, CLEAN, DJANGO_TESTS, RUNNERS, SYMPY_TESTS, write_buggy
from support.tools.tool_bench import Bench

pytestmark = pytest.mark.needs("bubblewrap")

TOOLS = ("eval", "suspects", "trace", "whatif", "pdb", "reproduce", "rewrite", "submit")
IMPORTS = "import builtins, doctest, json, os, time\n"
PLUGINS = {
    "xdist": ("addopts = -n 2 --dist loadfile", ""),
    "forked": ("addopts = --forked", ""),
    "timeout": ("timeout = 30\ntimeout_method = thread", ""),
    "cov": ("addopts = --cov=shop --cov-fail-under=1", ""),
    "randomly": ("", ""),
    "rerunfailures": ("addopts = --reruns 1", ""),
    "asyncio": ("asyncio_mode = auto", ""),
    "no plugin, only the last failed": ("addopts = --lf --stepwise", ""),
    "no plugin, a library replaced": (
        "",
        "json.dumps = os.open = os.write = builtins.open = time.time = time.sleep = None",
    ),
    "no plugin, another folder": ("", "os.chdir('/')"),
    "no plugin, a forked child that goes on": ("", "os.fork()"),
    "no plugin, doctest": ("", "doctest.run_docstring_examples('>>> 1', {})"),
}
"""What is in pytest.ini, and what the first test does before it fails."""
Project = tuple[Mapping[str, str], Sequence[str], str]
"""Its files, how its tests are run, and the ids of its tests, but for their names."""
TOX = "[tox]\nno_package = true\nenv_list = py\n[testenv]\ncommands =\n  python -V\n  pytest -q {posargs}\n"


def _with_plugin(name: str) -> Project:
    options, first = PLUGINS[name]
    tests = SYMPY_TESTS.replace("def test_total():\n", f"def test_total():\n    {first or 'pass'}\n", 1)
    if name == "asyncio":
        tests = tests.replace("def test_total", "async def test_total")
    files = {"pytest.ini": f"[pytest]\n{options}\n", "test_shop.py": f"{IMPORTS}{tests}"}
    return files, PYTEST, "test_shop.py::{}"


PROJECTS: dict[str, Project] = {
    "django": (*RUNNERS["django"][:2], "prices.tests.Prices.{}"),
    "sympy": (*RUNNERS["sympy"][:2], "sympy/core/tests/test_shop.py::{}"),
    "tox": (
        {"tox.ini": TOX, "test_shop.py": SYMPY_TESTS},
        ("python", "-m", "tox", "--current-env", "-e", "py", "-v", "--", "test_shop.py"),
        "test_shop.py::{}",
    ),
    "isolated": (
        {"conftest.py": "import sys\nsys.path.insert(0, '.')\n", "test_shop.py": SYMPY_TESTS},
        ("python", "-I", "-m", "pytest", "-q"),
        "test_shop.py::{}",
    ),
    "module": (
        {"prices/__init__.py": "", "prices/tests.py": f"{DJANGO_TESTS}\n\n__import__('unittest').main()\n"},
        ("python", "-m", "prices.tests"),
        "__main__.Prices.{}",
    ),
    "unittest": (
        {"prices.py": f"import threading\nthreading.Thread(target=threading.Event().wait).start()\n{DJANGO_TESTS}"},
        ("python", "-m", "unittest", "-v", "prices"),
        "prices.Prices.{}",
    ),
    **{name: _with_plugin(name) for name in PLUGINS},
}
REPRODUCTION = "from shop import total\n\n\ndef test_it():\n    assert total([4]) == 4\n"
WRONG = REPRODUCTION.replace("== 4", "== 5")
Open = Callable[..., Bench]


def failing_ids(name: str) -> tuple[str, ...]:
    """The ids of the failing tests of a project."""
    return tuple(PROJECTS[name][2].format(test) for test in ("test_total", "test_none"))


@pytest.fixture
def opened(tmp_path: Path) -> Any:
    """Opens a session on a project, by the name of its runner."""
    envs: list[DebugEnv] = []

    def begin(name: str, calls: int | None = None) -> Bench:
        files, entrypoint, ids = PROJECTS[name]
        write_buggy(tmp_path, files)
        limits = Limits(command_timeout_s=60.0, calls=calls)
        task = folder_task(tmp_path, entrypoint=entrypoint, limits=limits)
        failing, passing = RUNNERS[name][2:] if name in RUNNERS else (failing_ids(name), (ids.format("test_same"),))
        gold = make_patch({"shop.py": (BUGGY, CLEAN)})
        oracle = Oracle(task_id="shop", gold_patch=gold, fail_to_pass=failing, pass_to_pass=passing)
        plugin = (f"pytest-{name}",) if name in PLUGINS and " " not in name else ()
        more = ("tox", "tox-current-env") if name == "tox" else plugin
        sandbox = SandboxConfig(kind="bubblewrap", packages=("pytest", *more))
        envs.append(DebugEnv(task, oracle=oracle, tools=TOOLS, sandbox=sandbox, trusted=True))
        envs[-1].reset(seed=0)
        return Bench(envs[-1])

    yield begin
    for env in envs:
        env.close()


@pytest.mark.parametrize("name", PROJECTS)
def test_every_tool_follows_the_tests(opened: Open, name: str) -> None:
    bench, failing = opened(name), sorted(failing_ids(name))
    seen = bench.call("eval")
    outcomes: Any = seen.data["outcomes"]
    assert outcomes, seen.text
    assert sorted(each["id"] for each in outcomes if each["outcome"] == "failed") == failing
    assert seen.duration_s < 50
    assert {each["frames"][0]["function"] for each in outcomes if "frames" in each} == {"test_total", "test_none"}

    spectrum = bench.call("suspects", formula="ochiai")
    assert spectrum.data["failed"] == 2
    assert spectrum.text.splitlines()[1].startswith("1-2 shop.py total ")

    traced: Any = bench.call("trace", function="shop.py:total").data["failing"]
    assert sorted(call["test"] for call in traced) == failing

    changed: Any = bench.call("whatif", variants=[{"path": "shop.py", "line": 2, "do": "return sum(prices)"}]).data
    assert sorted(changed["variants"][0]["passes"]) == failing

    stopped: Any = bench.call("pdb", command="b shop.py:2\nc").data["stop"]
    assert (stopped["reason"], stopped["path"], stopped["line"]) == ("breakpoint", "shop.py", 2)
    failed, answer = set[str](), bench.call("pdb", command="cl 1\nc")
    stop: Any
    while (stop := answer.data.get("stop")) is not None:
        assert stop["reason"] == "post-mortem"
        failed.add(stop["function"])
        answer = bench.call("pdb", command="c")
    assert failed == {"test_total", "test_none"}
    assert "exit code 1" in answer.text

    reproduced = bench.call("reproduce", code=REPRODUCTION).data
    assert reproduced["status"] == "reproduced"
    assert (reproduced["path"] == "tests/test_reproduction/tests.py") == (name == "django")
    assert bench.call("suspects").data["failed"] == 1
    bench.call("rewrite", path="shop.py", code=CLEAN.decode())
    assert bench.call("eval").data["passed"]
    _, reward, terminated, _, _ = bench.env.step(ToolCall(id="1", name="submit", arguments={}))
    assert (reward, terminated) == (1.0, True)


def test_tox_that_runs_no_pytest_is_debugged_as_it_is(opened: Open) -> None:
    workspace = opened("tox").env.workspace
    for commands in ("python -V", "python -m unittest"):
        workspace.write_text("tox.ini", TOX.replace("pytest -q {posargs}", commands))
        assert workspace.debug_entrypoint == workspace.entrypoint


def test_a_submit_that_is_sent_back_at_the_last_call_is_judged(opened: Open) -> None:
    env = opened("django", calls=3).env
    env.step(ToolCall(id="1", name="reproduce", arguments={"code": WRONG}))
    env.step(ToolCall(id="2", name="rewrite", arguments={"path": "shop.py", "code": CLEAN.decode()}))
    _, reward, terminated, truncated, info = env.step(ToolCall(id="3", name="submit", arguments={}))
    assert "your test does not pass yet" in info["observation"].text
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["verdict"].resolved
