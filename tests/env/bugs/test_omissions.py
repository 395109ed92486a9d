"""Omissions, made in a small project and proven in real sandboxes: no line of the code looks wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.env.bugs.config import SynthConfig
from gumshoe.env.bugs.make import SynthResult, make_bugs, write_result
from gumshoe.env.tasks import load_tasks
from gumshoe.env.verifier.check import check_tasks
from support.folder_tasks import write_files
from support.sandboxes.sandbox_backends import WARM

pytestmark = pytest.mark.needs("bubblewrap")

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


def text_of(value):
    for word, meaning in WORDS.items():
        if meaning is value:
            return word
    return str(value)
''',
    "settings/write.py": '''\
"""Writes settings as text."""

from settings.values import text_of


def write(settings, width=0):
    lines = [line(name, value, width) for name, value in sorted(settings.items())]
    return "\\n".join(lines)


def line(name, value, width):
    return name.ljust(width) + "=" + text_of(value)
''',
    "tests/test_settings.py": """\
from settings.read import read
from settings.values import value_of
from settings.write import write


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


def test_written():
    assert write({"b": 1, "a": True}) == "a=yes\\nb=1"
    assert write({"b": 1}, 3) == "b  =1"


def test_read_again():
    settings = {"a": False, "b": "x y", "c": 12}
    assert read(write(settings, 2)) == settings


def test_nothing():
    assert read("") == {}
""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("harder") / "settings", FILES)


def proven(result: SynthResult, config: SynthConfig, out: Path) -> None:
    """One task of each kind passes the check, from the set on disk: it fails, and its gold patch repairs it."""
    write_result(result, config.model_copy(update={"out": str(out)}))
    sample = list({pair[0].tags["operator"]: pair for pair in load_tasks(str(out))}.values())
    assert [found.problems for found in check_tasks(sample, WARM)] == [()] * len(sample)


def test_omissions_become_tasks_that_name_their_kind(project: Path, tmp_path: Path) -> None:
    config = SynthConfig(projects=(str(project),), operators=OMISSIONS, sandbox=WARM)
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
