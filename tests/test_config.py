"""YAML and dotted overrides become a checked config, or one line that says what is wrong."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from gumshoe.cli import main
from gumshoe.commands.config import CONFIGS, config_keys, config_model
from gumshoe.config import (
    Config,
    apply_overrides,
    config_hash,
    dump_config,
    load_config,
    parse_yaml,
    read_yaml,
    validate,
)
from gumshoe.errors import ConfigError

BUNDLED = Path(__file__).parent.parent / "configs"
VALUES = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="ascii", categories=["L", "N"]))


class Server(Config):
    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=1, le=65535)


class Script(Config):
    kind: Literal["script"] = "script"
    lines: tuple[str, ...] = ()


class Model(Config):
    kind: Literal["model"] = "model"
    temperature: float = 0.0
    server: Server = Server()


class Experiment(Config):
    name: str
    workers: int = 1
    server: Server = Server()
    policy: Annotated[Script | Model, Field(discriminator="kind")] = Script()
    runs: tuple[Server, ...] = ()
    proxy: Server = Server(host="proxy", port=3128)
    notes: dict[str, Any] = Field(default_factory=dict)
    speed: Literal["fast", "slow"] = "fast"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text("name: first\nserver:\n  port: 9000\n", encoding="utf-8")
    return path


def test_overrides_win_over_the_file_and_later_ones_over_earlier_and_defaults_fill_the_rest(file: Path):
    config = load_config(Experiment, file)
    assert (config.name, config.workers, config.server) == ("first", 1, Server(port=9000))
    config = load_config(Experiment, file, ["workers=2", "server.port=1", "workers=3"])
    assert (config.workers, config.server.port) == (3, 1)


def test_a_section_in_part_keeps_the_rest_of_its_default(file: Path):
    assert load_config(Experiment, file, ["proxy.port=80"]).proxy == Server(host="proxy", port=80)
    assert load_config(Experiment, file, ["proxy.host=other"]).proxy == Server(host="other", port=3128)
    assert load_config(Experiment, file, ["policy.kind=model", "policy.server.port=80"]).policy == Model(
        server=Server(port=80)
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", 3),
        ("[1, x]", [1, "x"]),
        ("{b: 2}", {"b": 2}),
        ("null", None),
        ("", None),
        ("x=y", "x=y"),
        ("--flag=1 --other=2", "--flag=1 --other=2"),
        ("[unclosed", "[unclosed"),
    ],
)
def test_the_value_of_an_override_is_yaml_and_may_hold_equal_signs(file: Path, value: str, expected: object):
    assert load_config(Experiment, file, [f"notes.a={value}"]).notes["a"] == expected


def test_an_override_makes_the_sections_it_needs_in_a_copy():
    data = {"a": {"b": {"d": 1}}}
    assert apply_overrides(data, ["a.b.c=1", "a.b.d=2", "e.f=3"]) == {"a": {"b": {"c": 1, "d": 2}}, "e": {"f": 3}}
    assert data == {"a": {"b": {"d": 1}}}


@given(path=st.lists(st.sampled_from("abc"), min_size=1, max_size=3), value=VALUES)
def test_any_plain_value_can_be_set_anywhere(path: list[str], value: object):
    node: Any = apply_overrides({}, [f"{'.'.join(path)}={yaml.safe_dump(value)}"])
    for part in path:
        node = node[part]
    assert node == value


@pytest.mark.parametrize(
    ("override", "said"),
    [
        *((override, "key=value") for override in ("workers", "=3", "")),
        ("name.x=1", "name is a value, not a section"),
        ("options={a: 1, a: 2}", "key 'a' is given twice"),
    ],
)
def test_an_override_that_sets_nothing_is_refused(override: str, said: str):
    with pytest.raises(ConfigError, match=said):
        apply_overrides({"name": "first"}, [override])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "key 'name' is missing"),
        ({"wrokers": 2, "server": {"port": "many"}}, "unknown key 'wrokers'; did you mean 'workers'?"),
        ({"name": "x", "server": {"prot": 1}}, "unknown key 'server.prot'; did you mean 'port'?"),
        (
            {"name": "x", "policy": {"kind": "model", "temprature": 1}},
            "unknown key 'policy.temprature'; did you mean 'temperature'?",
        ),
        ({"name": "x", "runs": [{"hst": "a"}]}, "unknown key 'runs.0.hst'; did you mean 'host'?"),
        (
            {"name": "x", "policy": {"kind": "model", "zzz": 1}},
            "unknown key 'policy.zzz'; known: kind, server, temperature",
        ),
        ({"name": "x", "workers": "many"}, "workers: "),
        ({"name": "x", "server": {"port": 70000}}, "server.port: "),
        ({"name": "x", "server": 3}, "server: "),
        (
            {"name": "x", "policy": {"kind": "modl"}},
            "unknown policy.kind 'modl'; did you mean 'model'? known: script, model",
        ),
        ({"name": "x", "policy": {"temperature": 1}}, "key 'policy.kind' is missing; known: script, model"),
        ({"name": "x", "speed": "fsat"}, "unknown speed 'fsat'; did you mean 'fast'? known: fast, slow"),
    ],
)
def test_a_wrong_key_or_value_is_one_line_with_its_place_and_what_was_probably_meant(data: dict[str, Any], said: str):
    with pytest.raises(ConfigError) as caught:
        validate(Experiment, data, origin="here")
    assert str(caught.value).startswith(f"here: {said}")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no config file .*nowhere\.yaml"):
        read_yaml(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="is a folder, not a config"):
        read_yaml(tmp_path)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a: [1", "not valid YAML"),
        (b"a: b: c", "not valid YAML"),
        (b"- 1\n- 2\n", "must hold a mapping"),
        (b"just words", "must hold a mapping"),
        (b"\xff\xfe\x00", "cannot be read|not valid YAML"),
        (b"a: 1\nb:\n  c: 2\n  c: 3\n", "line 4: key 'c' is given twice"),
        (b"a: {x: 1, 'x': 2}", "line 1: key 'x' is given twice"),
    ],
)
def test_a_file_that_holds_no_mapping_is_refused_in_one_line(tmp_path: Path, content: bytes, complaint: str):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=complaint) as caught:
        read_yaml(path)
    assert "\n" not in str(caught.value)


def test_merged_keys_may_be_given_again():
    data = parse_yaml("base: &base {a: 1, b: 2}\nmore: &more {<<: *base, b: 3}\nlast: {<<: *more, a: 4}")
    assert (data["more"], data["last"]) == ({"a": 1, "b": 3}, {"a": 4, "b": 3})


def test_an_override_changes_one_use_of_an_alias_only(tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text("base: &base {seed: 1, tags: [a]}\nfirst: *base\nsecond: {<<: *base, name: x}\n")
    data = apply_overrides(read_yaml(path), ["first.seed=7"])
    assert data["base"] == {"seed": 1, "tags": ["a"]}
    assert data["first"] == {"seed": 7, "tags": ["a"]}
    assert data["second"] == {"seed": 1, "tags": ["a"], "name": "x"}


def test_what_is_written_reads_back_the_same(file: Path):
    config = load_config(Experiment, file, ["policy={kind: model, temperature: 0.5}", "notes.ü=[1, 2]"])
    file.write_text(dump_config(config), encoding="utf-8")
    assert load_config(Experiment, file) == config
    file.write_text("# nothing but words\n", encoding="utf-8")
    assert read_yaml(file) == {}
    assert next(iter(yaml.safe_load(dump_config(config)))) == "name"


def test_the_hash_changes_with_the_config_and_only_with_it():
    first, same, other = Experiment(name="a"), Experiment(name="a"), Experiment(name="a", workers=2)
    assert config_hash(first) == config_hash(same) != config_hash(other)


def test_a_bundled_config_is_found_by_name_from_anywhere_behind_a_file_of_ones_own(tmp_path: Path):
    with chdir(tmp_path):
        for name in ("collect/demo", "collect/demo.yaml", "configs/collect/demo.yaml"):
            assert read_yaml(Path(name))["policy"] == {"kind": "teacher"}
        for name in ("../collect/demo.yaml", "/collect/demo.yaml", "configs", "collect"):
            with pytest.raises(ConfigError, match="no config file"):
                read_yaml(Path(name))
        Path("collect").mkdir()
        Path("collect/demo.yaml").write_text("mine: 1\n", encoding="utf-8")
        assert read_yaml(Path("collect/demo.yaml")) == {"mine": 1}


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


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("collect sandbox.kind", 'sandbox.kind: auto or docker or podman or bubblewrap or local = "auto"\n'),
        ("collect policy.script", "policy.script: string, required\n    JSON-lines file with"),
        ("eval agent.kind", 'agent.kind: debug or rewrite or debug_5 or seeker or react = "seeker"\n'),
        ("harvest sandbox.kind", ' = "bubblewrap"\n'),
        ("eval --schema", '"arms"'),
    ],
)
def test_the_keys_are_printed_with_defaults_and_kinds(words: str, shown: str, capsys: pytest.CaptureFixture[str]):
    assert main(["config", *words.split()]) == 0
    assert shown in capsys.readouterr().out


def test_a_key_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "train", "nonsense"]) == 2
    assert "no key of this config begins with 'nonsense'" in capsys.readouterr().err
