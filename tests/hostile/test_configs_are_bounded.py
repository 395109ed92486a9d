"""A config file costs no more than its size: bombs of aliases, depth and digits are one clear error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.config import apply_overrides, parse_yaml, read_yaml
from gumshoe.errors import ConfigError

LEVELS = "\n".join(f"k{number}: &k{number} [{', '.join([f'*k{number - 1}'] * 9)}]" for number in range(1, 30))
BOMBS = {
    "aliases": (f"k0: &k0 [x]\n{LEVELS}\n", "more than 100000 values"),
    "an alias of itself": ("a: &a [1, *a]\n", "an alias contains itself"),
    "brackets": ("a: " + "[" * 50_000, "nested too deeply"),
    "braces": ("{a: " * 20_000, "nested too deeply"),
    "closed brackets": ("a: " + "[" * 5_000 + "]" * 5_000, "nested too deeply"),
    "digits": (f"a: {'9' * 5_000}\n", "Exceeds the limit"),
    "size": ("a: x\n" * 300_000, "larger than 1048576 bytes"),
    "a date that is none": ("a: 2001-99-99\n", "month must be in 1..12"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_one_config_error(bomb: str, tmp_path: Path) -> None:
    text, why = BOMBS[bomb]
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=why) as caught:
        read_yaml(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.timeout(20)
def test_the_command_line_ends_with_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(BOMBS["aliases"][0])
    assert main(["collect", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "more than 100000 values" in error


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(ConfigError, match="not a regular file"):
        read_yaml(tmp_path / "config.yaml")


def test_ordinary_aliases_work_and_an_override_changes_one_use_only(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("base: &base {seed: 1, tags: [a]}\nfirst: *base\nsecond: {<<: *base, name: x}\n")
    data = apply_overrides(read_yaml(path), ["first.seed=7"])
    assert data["base"] == {"seed": 1, "tags": ["a"]}
    assert data["first"] == {"seed": 7, "tags": ["a"]}
    assert data["second"] == {"seed": 1, "tags": ["a"], "name": "x"}


@pytest.mark.timeout(20)
def test_a_bomb_in_an_override_stays_text() -> None:
    bomb = "[" * 50_000
    assert apply_overrides({}, [f"a={bomb}"]) == {"a": bomb}
    assert parse_yaml("") is None
