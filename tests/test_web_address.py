"""An address that no request can be sent to is refused at once, wherever it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from gumshoe.cli import main
from gumshoe.collect.policies.llm import LLMEntry
from gumshoe.collect.policy_config import AnthropicConfig, OpenAIConfig
from gumshoe.config import validate
from gumshoe.errors import ConfigError
from gumshoe.eval.config import CommandConfig

WRONG = ["localhost:8000/v1", "//localhost/v1", "http:/localhost", "http://", "http://a:b/v1", "http://a b", "ftp://a"]


@pytest.mark.parametrize("address", WRONG)
@pytest.mark.parametrize("key", ["base_url", "endpoints"])
@pytest.mark.parametrize("model", [OpenAIConfig, AnthropicConfig, LLMEntry])
def test_a_model_is_not_asked_there(
    model: type[OpenAIConfig | AnthropicConfig | LLMEntry], key: str, address: str
) -> None:
    value = address if key == "base_url" else ["https://good.example/v1", address]
    with pytest.raises(ConfigError, match=rf"{key}.*not the address of a server: .*\(got {address!r}\)"):
        validate(model, {"model": "m", key: value}, origin="test")


def test_addresses_stay_as_they_are_written() -> None:
    for address in ("http://127.0.0.1:8000/v1", "HTTPS://Example.org/", "http://[::1]:8000", "https://u:p@host/x?y=1"):
        assert OpenAIConfig(model="m", base_url=address).base_url == address
    with pytest.raises(ConfigError, match="endpoint: this is not the address"):
        validate(CommandConfig, {"argv": ["x"], "endpoint": "localhost"}, origin="test")


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "MODEL", "--check", "--url"),
        ("debug", "PATH", "--model", "m", "--endpoint"),
        ("mcp", "PATH", "--model", "m", "--endpoint"),
    ],
)
def test_a_command_says_so_in_one_line(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [str(tmp_path) if word.isupper() else word for word in words]
    try:
        code = main([*argv, "localhost:8000"])
    except SystemExit as left:
        code = left.code
    said = capsys.readouterr().err
    assert (code, said.count("\n")) == (2, 1)
    assert "not the address of a server: begin it with http:// or https://" in said
