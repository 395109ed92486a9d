"""Bugs that are harder to find than a wrong sign, made in a small project and proven in real sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.config import SandboxConfig
from gumshoe.env.synth.config import SynthConfig
from gumshoe.env.synth.make import Result, make_bugs, write_result
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_tasks

LOCAL = SandboxConfig(kind="local", unsafe=True)
OMISSIONS = ("missing_branch", "missing_guard", "missing_handler", "missing_normalization")
FILES = {
    "settings/read.py": '''\
"""Reads settings from text."""

from settings.values import value_of


def read(text, defaults=None):
    """The settings in `text`, one `name = value` a line."""
    if defaults is None:
        defaults = {}
    found = dict(defaults)
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, _, value = line.partition("=")
        found[name.strip().lower()] = value_of(value)
    return found
''',
    "settings/values.py": '''\
"""What the text of a value stands for."""

WORDS = {"yes": True, "no": False}


def value_of(text):
    text = text.strip()
    if text in WORDS:
        return WORDS[text]
    elif text.startswith('"'):
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return text
''',
    "tests/test_settings.py": """\
from settings.read import read
from settings.values import value_of


def test_plain():
    assert read("a=1") == {"a": 1}


def test_names_are_tidied():
    assert read("Size =3") == {"size": 3}


def test_empty_lines_and_comments():
    assert read("# a comment\\n\\na=1 # another") == {"a": 1}


def test_defaults_stay():
    assert read("a=1", {"b": 2}) == {"a": 1, "b": 2}


def test_words():
    assert read("a = yes") == {"a": True}


def test_text():
    assert value_of('"x"') == "x"
    assert value_of("some text") == "some text"


def test_nothing():
    assert read("") == {}
""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harder") / "settings"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def proven(result: Result, config: SynthConfig, out: Path) -> None:
    """One task of each kind passes the check, from the set on disk: it fails, and its gold patch repairs it."""
    write_result(result, config.model_copy(update={"out": str(out)}))
    sample = list({pair[0].tags["operator"]: pair for pair in load_tasks(str(out))}.values())
    assert [found.problems for found in check_tasks(sample, LOCAL)] == [()] * len(sample)


def test_omissions_become_tasks_that_name_their_kind(project: Path, tmp_path: Path) -> None:
    config = SynthConfig(projects=(str(project),), operators=OMISSIONS, sandbox=LOCAL)
    result = make_bugs(config)
    assert {task.tags["operator"] for task, _ in result.tasks} == set(OMISSIONS)
    gold = "\n".join(oracle.gold_patch for _, oracle in result.tasks)
    for repair in (
        "+        if not line:\n+            continue\n",
        "+    if defaults is None:\n+        defaults = {}\n",
        "+    text = text.strip()\n",
        "+    except ValueError:\n+        return text\n",
        "+    elif text.startswith('\"'):\n+        return text[1:-1]\n",
    ):
        assert repair in gold
    proven(result, config, tmp_path / "set")
