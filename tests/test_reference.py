"""`gumshoe config`: every key of every config, with its meaning."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gumshoe.cli import main
from gumshoe.commands.config import CONFIGS, config_keys, config_model

BUNDLED = Path(__file__).parent.parent / "configs"


@pytest.mark.parametrize("name", CONFIGS)
def test_every_key_has_a_type_and_a_meaning(name: str):
    keys = config_keys(config_model(name))
    assert [key.name for key in keys if not key.type or not key.description] == []
    assert {key.name.partition(".")[0].removesuffix("[]") for key in keys} == set(config_model(name).model_fields)


@pytest.mark.parametrize(
    "path", sorted(BUNDLED.glob("[ceh][ova]*/*.yaml")), ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_the_keys_of_the_bundled_configs_are_listed(path: Path):
    keys = config_keys(config_model(path.parent.name))
    known = {key.name for key in keys}
    free = tuple(f"{key.name}." for key in keys if key.type.startswith("mapping"))
    given = flat(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert given
    assert [name for name in given if name not in known and not name.startswith(free)] == []


def flat(value: object, prefix: str = "") -> list[str]:
    """The dotted names of all keys in a config; items of a list are `[]`."""
    if isinstance(value, list):
        return [name for part in value for name in flat(part, f"{prefix.removesuffix('.')}[].")]
    if not isinstance(value, dict):
        return []
    return [name for key, part in value.items() for name in (f"{prefix}{key}", *flat(part, f"{prefix}{key}."))]


def test_the_keys_are_printed_with_defaults_and_kinds(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "collect", "sandbox.kind"]) == 0
    assert capsys.readouterr().out.startswith(
        'sandbox.kind: auto or docker or podman or bubblewrap or local = "auto"\n'
    )
    assert main(["config", "collect", "policy.script", "--markdown"]) == 0
    assert "| `policy.script` | string, required |  | JSON-lines file with" in capsys.readouterr().out
    assert main(["config", "eval", "agent.kind"]) == 0
    assert '= "seeker"' in capsys.readouterr().out
    assert main(["config", "harvest", "sandbox.kind"]) == 0
    assert '= "bubblewrap"' in capsys.readouterr().out
    assert main(["config", "eval", "--schema"]) == 0
    assert "arms" in json.loads(capsys.readouterr().out)["properties"]


def test_a_key_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "train", "nonsense"]) == 2
    assert "no key of this config begins with 'nonsense'" in capsys.readouterr().err
