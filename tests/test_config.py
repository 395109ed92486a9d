"""YAML and dotted overrides become a checked config, or one line that says what is wrong."""

from __future__ import annotations

import json
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


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        validate(Experiment, data, origin="here")
    message = str(caught.value)
    assert "\n" not in message
    assert caught.value.exit_code == 2
    return message


def test_a_file_is_read_and_defaults_fill_the_rest(file: Path):
    config = load_config(Experiment, file)
    assert (config.name, config.workers, config.server.port, config.server.host) == ("first", 1, 9000, "127.0.0.1")


def test_a_section_in_part_keeps_the_rest_of_its_default(file: Path):
    assert load_config(Experiment, file, ["proxy.port=80"]).proxy == Server(host="proxy", port=80)
    assert load_config(Experiment, file, ["proxy.host=other"]).proxy == Server(host="other", port=3128)
    assert load_config(Experiment, file, ["policy.kind=model", "policy.server.port=80"]).policy == Model(
        server=Server(port=80)
    )


def test_overrides_win_over_the_file_and_later_ones_over_earlier(file: Path):
    config = load_config(Experiment, file, ["workers=2", "server.port=1", "workers=3"])
    assert (config.workers, config.server.port) == (3, 1)


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("notes.a=3", 3),
        ("notes.a=[1, x]", [1, "x"]),
        ("notes.a={b: 2}", {"b": 2}),
        ("notes.a=null", None),
        ("notes.a=", None),
        ("notes.a=x=y", "x=y"),
        ("notes.a=--flag=1 --other=2", "--flag=1 --other=2"),
        ("notes.a=[unclosed", "[unclosed"),
    ],
)
def test_the_value_of_an_override_is_yaml_and_may_hold_equal_signs(file: Path, override: str, expected: object):
    assert load_config(Experiment, file, [override]).notes["a"] == expected


def test_an_override_makes_the_sections_it_needs():
    assert apply_overrides({}, ["a.b.c=1", "a.b.d=2"]) == {"a": {"b": {"c": 1, "d": 2}}}


def test_overrides_leave_the_data_they_were_given_alone():
    data = {"a": {"b": 1}}
    apply_overrides(data, ["a.b=2"])
    assert data == {"a": {"b": 1}}


@given(path=st.lists(st.sampled_from("abc"), min_size=1, max_size=3), value=VALUES)
def test_any_plain_value_can_be_set_anywhere(path: list[str], value: object):
    node: Any = apply_overrides({}, [f"{'.'.join(path)}={yaml.safe_dump(value)}"])
    for part in path:
        node = node[part]
    assert node == value


@pytest.mark.parametrize("override", ["workers", "=3", ""])
def test_an_override_without_key_or_value_is_refused(override: str):
    with pytest.raises(ConfigError, match="key=value"):
        apply_overrides({}, [override])


def test_an_override_below_a_plain_value_is_refused():
    with pytest.raises(ConfigError, match="name is a value, not a section"):
        apply_overrides({"name": "first"}, ["name.x=1"])


@pytest.mark.parametrize(
    ("data", "unknown", "nearest"),
    [
        ({"name": "x", "wrokers": 2}, "wrokers", "workers"),
        ({"name": "x", "server": {"prot": 1}}, "server.prot", "port"),
        ({"name": "x", "policy": {"kind": "model", "temprature": 1}}, "policy.temprature", "temperature"),
        ({"name": "x", "policy": {"kind": "model", "server": {"hots": 1}}}, "policy.server.hots", "host"),
        ({"name": "x", "runs": [{"hst": "a"}]}, "runs.0.hst", "host"),
    ],
)
def test_an_unknown_key_is_answered_with_the_nearest_known_one(data: dict[str, Any], unknown: str, nearest: str):
    message = refusal(data)
    assert f"{unknown}'" in message
    assert f"did you mean {nearest!r}?" in message


def test_an_unknown_key_that_is_like_no_other_is_answered_with_all_of_its_section():
    assert "unknown key 'policy.zzz'; known: kind, server, temperature" in refusal(
        {"name": "x", "policy": {"kind": "model", "zzz": 1}}
    )


def test_an_unknown_key_is_named_before_other_mistakes():
    assert "wrokers" in refusal({"wrokers": 2, "server": {"port": "many"}})


def test_a_missing_key_is_named():
    assert refusal({}) == "here: key 'name' is missing"


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({"name": "x", "workers": "many"}, "workers: "),
        ({"name": "x", "server": {"port": 70000}}, "server.port: "),
        ({"name": "x", "server": 3}, "server: "),
        ({"name": ["x"]}, "name: "),
    ],
)
def test_a_wrong_value_is_named_with_its_place(data: dict[str, Any], where: str):
    assert where in refusal(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"policy": {"kind": "modl"}}, "unknown policy.kind 'modl'; did you mean 'model'? known: script, model"),
        ({"policy": {"kind": "oracle"}}, "unknown policy.kind 'oracle'; known: script, model"),
        ({"policy": {"temperature": 1}}, "key 'policy.kind' is missing; known: script, model"),
        ({"speed": "fsat"}, "unknown speed 'fsat'; did you mean 'fast'? known: fast, slow"),
    ],
)
def test_a_kind_that_is_not_there_is_answered_with_the_nearest_and_all(data: dict[str, Any], said: str):
    assert refusal({"name": "x", **data}) == f"here: {said}"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ["debug", ".", "-p", "policy.kind=investigatr"],
            "unknown policy.kind 'investigatr'; did you mean 'investigator'? ",
        ),
        (
            ["collect", "collect/demo", "-p", "sandbox.kind=dokcer"],
            "unknown sandbox.kind 'dokcer'; did you mean 'docker'? ",
        ),
        (
            ["eval", "eval/seeker", "-p", "solver.kind=scriptd"],
            "unknown solver.kind 'scriptd'; did you mean 'scripted'? ",
        ),
        (["train", "train/smollm2", "-p", "method=gpro"], "unknown method 'gpro'; did you mean 'grpo'? known: full, "),
    ],
)
def test_a_typo_in_a_kind_is_one_line(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert said in error


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"no config file .*nowhere\.yaml"):
        read_yaml(tmp_path / "nowhere.yaml")


def test_a_folder_is_no_config_file(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot be read"):
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


def test_an_override_with_a_key_twice_is_refused():
    with pytest.raises(ConfigError, match="key 'a' is given twice"):
        apply_overrides({}, ["options={a: 1, a: 2}"])


def test_an_override_changes_one_use_of_an_alias_only(tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text("base: &base {seed: 1, tags: [a]}\nfirst: *base\nsecond: {<<: *base, name: x}\n")
    data = apply_overrides(read_yaml(path), ["first.seed=7"])
    assert data["base"] == {"seed": 1, "tags": ["a"]}
    assert data["first"] == {"seed": 7, "tags": ["a"]}
    assert data["second"] == {"seed": 1, "tags": ["a"], "name": "x"}


def test_an_empty_file_is_an_empty_config(tmp_path: Path):
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing but words\n", encoding="utf-8")
    assert read_yaml(path) == {}


def test_what_is_written_reads_back_the_same(file: Path):
    config = load_config(Experiment, file, ["policy={kind: model, temperature: 0.5}", "notes.ü=[1, 2]"])
    file.write_text(dump_config(config), encoding="utf-8")
    assert load_config(Experiment, file) == config
    assert next(iter(yaml.safe_load(dump_config(config)))) == "name"


def test_the_hash_changes_with_the_config_and_only_with_it():
    first, same, other = Experiment(name="a"), Experiment(name="a"), Experiment(name="a", workers=2)
    assert config_hash(first) == config_hash(same) != config_hash(other)


@pytest.mark.parametrize("name", ["collect/demo", "collect/demo.yaml", "configs/collect/demo.yaml"])
def test_a_bundled_config_is_found_by_name_from_anywhere(name: str, tmp_path: Path):
    with chdir(tmp_path):
        assert read_yaml(Path(name))["policy"] == {"kind": "teacher"}


def test_a_file_of_ones_own_goes_before_a_bundled_one(tmp_path: Path):
    (tmp_path / "collect").mkdir()
    (tmp_path / "collect" / "demo.yaml").write_text("mine: 1\n", encoding="utf-8")
    with chdir(tmp_path):
        assert read_yaml(Path("collect/demo.yaml")) == {"mine": 1}


@pytest.mark.parametrize("name", ["../collect/demo.yaml", "/collect/demo.yaml", "configs", "collect"])
def test_only_names_below_the_bundled_folder_are_found(name: str, tmp_path: Path):
    with chdir(tmp_path), pytest.raises(ConfigError, match="no config file"):
        read_yaml(Path(name))


# --- gumshoe config: every key of every config, with its meaning


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
    assert main(["config", "collect", "policy.script"]) == 0
    assert capsys.readouterr().out.strip().startswith("policy.script: string, required\n    JSON-lines file with")
    assert main(["config", "eval", "agent.kind"]) == 0
    assert '= "seeker"' in capsys.readouterr().out
    assert main(["config", "harvest", "sandbox.kind"]) == 0
    assert '= "bubblewrap"' in capsys.readouterr().out
    assert main(["config", "eval", "--schema"]) == 0
    assert "arms" in json.loads(capsys.readouterr().out)["properties"]


def test_a_key_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]):
    assert main(["config", "train", "nonsense"]) == 2
    assert "no key of this config begins with 'nonsense'" in capsys.readouterr().err
