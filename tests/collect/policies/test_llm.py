"""llm.yaml: entries that runs name, and keys that are shown nowhere."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gumshoe.collect.config import AnthropicConfig, CollectConfig, ModelConfig, OpenAIConfig, TeacherConfig
from gumshoe.collect.policies.llm import find_key, llm_path, load_llm, with_llm, write_template
from gumshoe.errors import ConfigError
from support.provider_server import chat, fault, provider

KEY = "sk-planted-9f8e7d6c5b4a"
FILE = f"""\
models:
  gpt:
    model: gpt-real
    base_url: http://127.0.0.1:9/v1
    api_key_env: OTHER_KEY
    api_key: {KEY}
    max_tokens: 100
    top_p: 0.9
    retry: {{attempts: 2}}
    prices: {{prompt: 1, completion: 2}}
  bare: {{}}
  claude: {{kind: anthropic, model: real}}
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "llm.yaml"
    path.write_text(FILE, encoding="utf-8")
    return {"GUMSHOE_LLM_CONFIG": str(path)}


def test_a_run_names_an_entry_and_overrides_it(environ: dict[str, str]) -> None:
    found = with_llm(OpenAIConfig(model="gpt", max_tokens=7), environ)
    assert isinstance(found, OpenAIConfig)
    assert (found.model, found.profile, found.max_tokens) == ("gpt-real", "gpt", 7)
    assert found.base_url == "http://127.0.0.1:9/v1"
    assert found.prices is not None
    assert KEY not in found.model_dump_json()
    assert with_llm(found, environ) == found
    assert (found.top_p, found.retry.attempts) == (0.9, 2)
    for given, model in ((OpenAIConfig(model="bare"), "bare"), (AnthropicConfig(model="claude"), "real")):
        named = with_llm(given, environ)
        assert isinstance(named, type(given))
        assert (named.model, named.profile) == (model, given.model)
    for policy in (TeacherConfig(), OpenAIConfig(model="unknown")):
        assert with_llm(policy, environ) == policy
    with pytest.raises(ConfigError, match=r"set policy\.kind=anthropic"):
        with_llm(OpenAIConfig(model="claude"), environ)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("{kind: anthropic, azure_entra: true}", "unknown key 'models.m.azure_entra'"),
        ("{kind: opnai}", "unknown models.m.kind 'opnai'; did you mean 'openai'? known: openai, anthropic"),
        ("gpt", "models.m: "),
    ],
)
def test_an_entry_has_the_keys_of_its_kind(entry: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "llm.yaml"
    path.write_text(f"models: {{m: {entry}}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_llm({"GUMSHOE_LLM_CONFIG": str(path)})


def test_the_environment_goes_before_the_file(environ: dict[str, str]) -> None:
    found = with_llm(OpenAIConfig(model="gpt"), environ)
    assert isinstance(found, OpenAIConfig)
    assert find_key(found, environ) == KEY
    assert find_key(found, {**environ, "OTHER_KEY": "sk-env"}) == "sk-env"
    assert find_key(OpenAIConfig(model="m", base_url="http://x"), environ) == "none"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (OpenAIConfig(model="m", profile="bare"), "^policy.model m needs a key: set OPENAI_API_KEY, or api_key in "),
        (OpenAIConfig(model="gtp"), r"^policy.model 'gtp' is not an entry of .*llm.yaml \(entries: bare, claude, gpt"),
        (AnthropicConfig(model="m"), "Anthropic is not asked without a key: .* set ANTHROPIC_API_KEY"),
    ],
)
def test_a_provider_itself_wants_a_key(config: ModelConfig, said: str, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=said):
        find_key(config, environ)


def test_where_the_file_is(tmp_path: Path) -> None:
    assert llm_path({"XDG_CONFIG_HOME": "/c"}) == Path("/c/gumshoe/llm.yaml")
    assert llm_path({}).parts[-3:] == (".config", "gumshoe", "llm.yaml")
    assert load_llm({"XDG_CONFIG_HOME": str(tmp_path)}) == {}
    with pytest.raises(ConfigError, match="gumshoe init --path"):
        load_llm({"GUMSHOE_LLM_CONFIG": str(tmp_path / "none.yaml")})


def test_init_writes_a_private_commented_file(
    tmp_path: Path, run_here: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    path = tmp_path / "deep" / "llm.yaml"
    done = run_here("init", "--path", str(path))
    assert str(path) in done.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_llm({"GUMSHOE_LLM_CONFIG": str(path)}) == {}
    again = run_here("init", "--path", str(path))
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    lines = [line.removeprefix("  # ") for line in path.read_text().splitlines() if line.startswith("  #")]
    entries = yaml.safe_load("\n".join(lines))
    assert set(entries) == {"gpt", "local", "azure", "claude", "router"}
    path.write_text("models:\n" + "\n".join(f"  {line}" for line in lines), encoding="utf-8")
    found = load_llm({"GUMSHOE_LLM_CONFIG": str(path)})
    assert found["azure"].model_dump()["azure_api_version"] == "2024-10-21"
    with pytest.raises(ConfigError, match="cannot be created"):
        write_template(Path("/proc/none/llm.yaml"))


def test_a_planted_key_is_nowhere(tmp_path: Path, config: Callable[..., CollectConfig]) -> None:
    """The provider repeats the key in an error, and the agent looks for it in its environment."""
    llm = tmp_path / "private" / "llm.yaml"
    llm.parent.mkdir()
    look = {"command": "env; cat /proc/self/environ | tr '\\0' '\\n'; echo looked"}
    failing = fault(500, f"you sent the key {KEY}")
    with provider(failing, chat("[seek 1] env", [("bash", look)]), chat("x", [("submit", {})])) as server:
        llm.write_text(yaml.safe_dump({"models": {"m": {"base_url": server.url, "api_key": KEY}}}), encoding="utf-8")
        made = config(
            1,
            policy={"kind": "openai", "model": "m", "retry": {"attempts": 1}},
            agent={"tools": ["bash", "submit"]},
        )
        file = tmp_path / "c.yaml"
        file.write_text(yaml.safe_dump(made.model_dump(mode="json", exclude_unset=True)), encoding="utf-8")
        environ = {**os.environ, "GUMSHOE_LLM_CONFIG": str(llm), "OPENAI_API_KEY": "", "ANOTHER_SECRET": KEY}
        argv = [sys.executable, "-m", "gumshoe", "collect", str(file), "-vv"]
        done = subprocess.run(argv, capture_output=True, text=True, env=environ, check=False)
        assert done.returncode == 0, done.stderr
        assert {sent["authorization"] for sent in server.headers} == {f"Bearer {KEY}"}
    assert KEY not in done.stdout + done.stderr
    texts = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert b"looked" in texts[tmp_path / "run" / "trajectories.jsonl"]
    assert b"[key]" in texts[tmp_path / "run" / "failures.jsonl"]
    assert [path for path, text in texts.items() if KEY.encode() in text] == []
