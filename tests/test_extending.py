"""The examples of docs/architecture.md work as they are written, and none is longer than 40 lines."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
import yaml

from gumshoe.collect.data.store import read_trajectories
from gumshoe.env import DebugEnv
from gumshoe.env.config import SandboxConfig
from gumshoe.env.sandboxes.channel import Link
from gumshoe.env.sandboxes.client import WardenSandbox
from gumshoe.env.tasks import load_tasks
from gumshoe.errors import ConfigError, TaskError
from gumshoe.eval.results import load_scorers
from gumshoe.plugins import load_path, search_beside
from gumshoe.records import Completion, ToolCall
from gumshoe.tools.toolbox import make_tools
from support.sandboxes.sandbox_backends import CHEAPEST, CHEAPEST_OPTIONS, CHEAPEST_SETTINGS

Run = Callable[..., subprocess.CompletedProcess[str]]
Gumshoe = Callable[..., str]

pytestmark = pytest.mark.needs("bubblewrap")

BLOCK = re.compile(r"^```python\n# (?P<file>\w+\.py)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def examples(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the modules of the page and two small projects; the current folder."""
    text = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    for block in BLOCK.finditer(text):
        assert block["code"].count("\n") <= 40
        (tmp_path / block["file"]).write_text(block["code"], encoding="utf-8")
    for name in ("one", "two"):
        folder = tmp_path / "projects" / name
        folder.mkdir(parents=True)
        (folder / "calc.py").write_text("def double(x):\n    return x + 2\n", encoding="utf-8")
        test = "from calc import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
        (folder / "test_calc.py").write_text(test, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def gumshoe(run_here: Run) -> Callable[..., str]:
    """Runs the command, which must succeed; returns what it prints."""

    def run(*words: str) -> str:
        done = run_here(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def write_config(folder: Path, **given: object) -> Path:
    """A config of `gumshoe collect` in a folder of its own, with the modules beside it."""
    config = {
        "out": str(folder / "run"),
        "tasks": {"source": "my_source:load", "options": {"path": str(folder / "projects")}},
        "sandbox": CHEAPEST_SETTINGS,
        **given,
    }
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def load_source(names: list[str]) -> object:
    return load_tasks(*names)


def trajectories(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "run" / "trajectories.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_source_of_ones_own_is_listed_and_checked(examples: Path, gumshoe: Gumshoe) -> None:
    del examples
    assert "mine/one" in gumshoe("tasks", "list", "my_source:load", "-o", "path=projects")
    gumshoe("tasks", "check", "my_source:load", "-o", "path=projects", *CHEAPEST_OPTIONS)


def test_a_policy_of_ones_own_plays(examples: Path, gumshoe: Gumshoe, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {"kind": "custom", "path": "my_policy:RunThenStop", "options": {"why": "because"}}
    config = write_config(examples, policy=policy, agent={"kind": "seeker"})
    monkeypatch.chdir("/")
    gumshoe("collect", str(config))
    found = trajectories(examples)
    assert len(found) == 2
    assert all("because" in json.dumps(one["context_pack"]) for one in found)


def test_a_tool_of_ones_own_answers(examples: Path) -> None:
    task, _ = load_tasks("my_source:load", path=str(examples / "projects"))[0]
    env = DebugEnv(task, tools=["view", "my_tools:wc"], sandbox=CHEAPEST, trusted=True)
    try:
        env.reset(seed=0)
        texts = [
            env.step(ToolCall(id="1", name="wc", arguments={"path": path}))[0]["text"] for path in ("calc.py", "x/")
        ]
    finally:
        env.close()
    assert texts[0] == "2"
    assert "give a file" in texts[1]


def test_a_tool_beside_the_config_is_found_from_anywhere(examples: Path, gumshoe: Gumshoe) -> None:
    script = examples / "script.jsonl"
    call = ToolCall(id="1", name="wc", arguments={"path": "calc.py"})
    turns = [
        Completion(text="", tool_calls=(call,)),
        Completion(text="", tool_calls=(ToolCall(id="2", name="submit"),)),
    ]
    script.write_text("".join(f"{turn.model_dump_json()}\n" for turn in turns), encoding="utf-8")
    policy = {"kind": "scripted", "script": str(script)}
    config = write_config(examples, policy=policy, agent={"tools": ["my_tools:wc", "submit"]})
    with chdir("/"):
        gumshoe("collect", str(config), "-p", "tasks.limit=1")
    ((first, _),) = (read.steps for read in read_trajectories(examples / "run"))
    assert first.observations[0].text == "2"
    gumshoe("collect", str(config), "--force-all")
    assert len(trajectories(examples)) == 2


IMPORTS = """\
from __future__ import annotations
from collections.abc import Callable
from gumshoe.protocols import Workspace
from gumshoe.tools import tool
"""
UNMADE = "class It:\n    def __init__(self):\n        self.words = open('words.txt')\n"
SCORER = "class It:\n    name = 'steps'\n    def score(self, trajectory, oracle): ...\n"


def a_tool(signature: str) -> str:
    return f'{IMPORTS}@tool\ndef It({signature}) -> str:\n    """Counts."""\n'


def a_tool_class(body: str) -> str:
    return f"from gumshoe.tools.base import BaseTool\nclass It(BaseTool):\n    {body}\n"


@pytest.mark.parametrize(
    ("load", "code", "said"),
    [
        (make_tools, "", "tool 'odd:It' cannot be imported: module 'odd' has no attribute 'It'"),
        (make_tools, "It = 1 / 0\n", "odd.py:1: ZeroDivisionError: division by zero"),
        (make_tools, "It = (\n", "SyntaxError: '(' was never closed"),
        (make_tools, UNMADE, "odd.py:3: FileNotFoundError: "),
        (make_tools, a_tool("path"), "odd.py:5: TypeError: tool It: parameter 'path' needs a type"),
        (make_tools, a_tool("path: Unknown"), "tool It: a type cannot be found: name 'Unknown' is not defined"),
        (make_tools, a_tool("path: Callable"), "tool It: parameter 'path' has a type that JSON cannot carry"),
        (make_tools, a_tool("path: str = 3"), "tool It: the default of 'path' is not of its type"),
        (make_tools, a_tool("path: str, workspace: Workspace"), "the parameter 'workspace' must come first"),
        (make_tools, a_tool("*paths: str"), "tool It: parameter 'paths' cannot be given by name"),
        (make_tools, a_tool_class("name = 'wc'"), "it needs a name, and a method run"),
        (
            make_tools,
            a_tool_class("name = 'wc'\n    def run(self, path: str) -> str: ..."),
            "run must take the workspace first",
        ),
        (load_scorers, "", "metric 'odd:It' cannot be imported"),
        (load_scorers, "def It(): ...", "is not a metric"),
        (load_scorers, SCORER, "metric 'steps' is one of Gumshoe's own"),
        (load_source, "It = 1", "it is no function"),
        (load_source, "def It(): return [(1, 2)]", "it must return pairs of a Task and its Oracle, not (1, 2)"),
        (load_source, "def It():\n    yield 1 / 0", "odd.py:2: ZeroDivisionError: division by zero"),
        (
            load_source,
            "from gumshoe.records import Task\ndef It(): Task(id=1)",
            "odd.py:2: ValidationError: id: Input",
        ),
        (
            load_source,
            "from gumshoe.env.tasks import load_tasks\ndef It(): return load_tasks('casebook')[:1] * 2",
            "it has several tasks that are called 'casebook/",
        ),
    ],
)
def test_what_cannot_be_used_is_one_line_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[[list[str]], object], code: str, said: str
) -> None:
    (tmp_path / "odd.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ConfigError, TaskError)) as caught:
        load(["odd:It"])
    message = str(caught.value)
    assert said in message
    assert "\n" not in message


def test_a_metric_of_ones_own_is_measured_and_shown(examples: Path, gumshoe: Gumshoe) -> None:
    config = write_config(examples)
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    settings["arms"] = [{"name": "mine", "policy": {"kind": "custom", "path": "my_policy:RunThenStop"}}]
    settings["metrics"] = ["my_metrics:ReportLength"]
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    assert {"Report", "lines"} <= set(gumshoe("eval", str(config)).split())
    summary = json.loads((examples / "run" / "summary.json").read_text(encoding="utf-8"))
    assert summary["arms"][0]["groups"]["all"]["report_lines"]["value"] == 2


def test_a_sandbox_of_ones_own_runs_programs(examples: Path) -> None:
    backend = load_path("my_backend:NicedBackend", "sandbox")(SandboxConfig(kind="local"))
    with WardenSandbox(Link(backend, 1 << 18)) as sandbox:
        assert sandbox.backend == "niced"
        assert int(sandbox.run(["nice"]).output) == min(19, os.nice(0) + 19)


def test_a_module_in_the_current_folder_is_found_behind_those_beside_the_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("beside", "here"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "both.py").write_text(f"name = {name!r}\n", encoding="utf-8")
    (tmp_path / "here" / "only_here.py").write_text("name = 'here'\n", encoding="utf-8")
    (tmp_path / "here" / "json.py").write_text("name = 'here'\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    search_beside(tmp_path / "beside" / "config.yaml")
    assert load_path("both:name", "tool") == "beside"
    assert load_path("only_here:name", "tool") == "here"
    assert load_path("json:loads", "tool") is json.loads


def test_a_bundled_config_makes_no_folder_of_its_name_importable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "collect").mkdir()
    (tmp_path / "collect" / "hidden_here.py").touch()
    monkeypatch.chdir(tmp_path)
    search_beside(Path("collect/demo"))
    with pytest.raises(ConfigError, match="hidden_here"):
        load_path("hidden_here:name", "policy")
