"""Models, tokenizers and templates: what is damaged is refused in one line, and a .gguf file becomes a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gumshoe.cli import main
from gumshoe.errors import ConfigError, ServeError
from gumshoe.eval.serve.backends import check_model_folder
from gumshoe.train.model import load_tokenizer, load_weights, read_template, training_template, unpack
from gumshoe.train.rows.render import Renderer, spans
from gumshoe.train.sft import train_sft
from support.train.tiny_model import make_config, make_tiny_tokenizer, tiny_model
from support.train.training_rows import TOOLS, conversation, row

HALF = "half of what is there"
SIZES = '{"hidden_size": "big", "num_attention_heads": 2}'
UNKNOWN = '{"model_type": "nonesuch", "architectures": ["Nonesuch"]}'
PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
"""A chat template without tools."""


def damaged(folder: Path, name: str, content: str | None) -> Path:
    """A copy of a model, with one of its files cut in half, replaced, or removed."""
    shutil.copytree(tiny_model(), folder)
    file = folder / name
    if content is None:
        file.unlink()
    elif content == HALF:
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.write_text(content)
    return folder


@pytest.mark.parametrize(
    ("load", "name", "content", "message"),
    [
        (load_weights, "config.json", HALF, "not a valid JSON file"),
        (load_weights, "config.json", "[]", "cannot be loaded"),
        (load_weights, "config.json", "null", "cannot be loaded"),
        (load_weights, "config.json", SIZES, "cannot be loaded"),
        (load_weights, "config.json", UNKNOWN, "model type `nonesuch`"),
        (load_weights, "model.safetensors", HALF, "SafetensorError"),
        (load_weights, "model.safetensors", None, "no file named model.safetensors"),
        (load_tokenizer, "tokenizer.json", HALF, "cannot be loaded"),
        (load_tokenizer, "tokenizer.json", "[]", "cannot be loaded"),
        (load_tokenizer, "tokenizer.json", None, "has no tokenizer"),
        (load_tokenizer, "tokenizer_config.json", "[]", "cannot be loaded"),
    ],
)
def test_what_is_damaged_cannot_be_loaded(
    load: Callable[[str, None], object], name: str, content: str | None, message: str, tmp_path: Path
) -> None:
    folder = damaged(tmp_path / "model", name, content)
    if (name, content) == ("tokenizer.json", None):
        (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match=message):
        load(str(folder), None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "is not a model folder: it holds no config.json"),
        ("config.json", HALF, "config.json cannot be read: it is not JSON"),
        ("model.safetensors", None, "is not a model folder: it holds no weights"),
    ],
)
def test_unpack_makes_nothing_of_half_a_model(
    name: str, content: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = damaged(tmp_path / "model", name, content)
    assert main(["unpack", str(folder), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def write_gguf(out: Path) -> dict[str, Any]:
    """Writes a small Llama with a byte-level tokenizer and a template without tools; returns its matrices."""
    import numpy as np
    from gguf import GGUFWriter, TokenType

    tokenizer = make_tiny_tokenizer([row(0), row(1)], vocab=400)
    core = json.loads(tokenizer.backend_tokenizer.to_str())
    tokens = [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    added = {token["content"] for token in core["added_tokens"]}
    writer = GGUFWriter(str(out), "llama")
    writer.add_name("small")
    sizes = {"context_length": 4096, "embedding_length": 64, "block_count": 1, "feed_forward_length": 96}
    heads = {"head_count": 2, "head_count_kv": 2, "rope_dimension_count": 32, "rope_freq_base": 10000.0}
    for key, value in {**sizes, **heads, "layer_norm_rms_eps": 1e-5, "vocab_size": len(tokens)}.items():
        getattr(writer, f"add_{key}")(value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([TokenType.CONTROL if token in added else TokenType.NORMAL for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in core["model"]["merges"]])
    writer.add_bos_token_id(tokenizer.convert_tokens_to_ids("<|im_start|>"))
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_unk_token_id(tokenizer.pad_token_id)
    writer.add_chat_template(PLAIN)
    draw = np.random.default_rng(0)
    shapes = {"token_embd.weight": (len(tokens), 64), "output_norm.weight": (64,)}
    shapes |= {f"blk.0.{name}.weight": (64, 64) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
    shapes |= {"blk.0.ffn_gate.weight": (96, 64), "blk.0.ffn_up.weight": (96, 64), "blk.0.ffn_down.weight": (64, 96)}
    shapes |= {"blk.0.attn_norm.weight": (64,), "blk.0.ffn_norm.weight": (64,)}
    weights = {name: draw.normal(0, 0.05, shape).astype(np.float32) for name, shape in shapes.items()}
    for name, matrix in weights.items():
        writer.add_tensor(name, matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GUMSHOE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_file_becomes_a_model_folder_once(cache: Path, tmp_path: Path) -> None:
    import numpy as np
    from safetensors.torch import load_file

    weights = write_gguf(tmp_path / "small.gguf")
    folder = unpack(tmp_path / "small.gguf")
    assert folder.is_relative_to(cache)
    stored = load_file(folder / "model.safetensors")
    found = stored["model.layers.0.mlp.down_proj.weight"].float().numpy()
    assert np.abs(found - weights["blk.0.ffn_down.weight"]).max() < 1e-3
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())
    made = (folder / "model.safetensors").stat().st_mtime_ns
    (tmp_path / "small.gguf").rename(tmp_path / "moved.gguf")
    (tmp_path / "small.gguf").write_bytes((tmp_path / "moved.gguf").read_bytes())
    assert unpack(tmp_path / "small.gguf") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    assert [path.name for path in (cache / "models").iterdir()] == [folder.name]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file"),
        (b"hello", "is not a GGUF file"),
        (b"GGUF\x03\x00\x00\x00", "cannot be unpacked"),
    ],
)
def test_what_is_no_gguf_file_is_refused_in_one_line(
    content: bytes | None, said: str, cache: Path, tmp_path: Path
) -> None:
    file = tmp_path / "text.gguf"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"text.gguf {said}"):
        unpack(file)
    assert not list(cache.glob("models/*"))


def test_a_model_without_tools_is_refused_and_trains_with_the_bundled_template(
    cache: Path, dataset: Path, tmp_path: Path
) -> None:
    write_gguf(tmp_path / "small.gguf")
    settings: dict[str, Any] = {"model": str(tmp_path / "small.gguf"), "max_length": 4096, "max_steps": 1}
    with pytest.raises(ConfigError, match=r"leaves out tools or their calls: .*chat_template: hermes"):
        train_sft(make_config(dataset, tmp_path / "run", **settings))
    result = train_sft(make_config(dataset, tmp_path / "run", chat_template="hermes", **settings))
    check_model_folder(result.model)
    assert load_tokenizer(str(result.model), None).chat_template == read_template("hermes")


def test_unpack_writes_a_folder_that_serves(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_gguf(tmp_path / "small.gguf")
    out = tmp_path / "models" / "small"
    assert main(["unpack", str(tmp_path / "small.gguf"), "--out", str(out)]) == 2
    assert "chat_template: hermes" in capsys.readouterr().err
    with pytest.raises(ServeError, match="gumshoe unpack"):
        check_model_folder(unpack(tmp_path / "small.gguf"))
    with pytest.raises(ServeError, match="gumshoe unpack"):
        check_model_folder(tmp_path / "small.gguf")
    assert main(["unpack", str(tmp_path / "small.gguf"), "--out", str(out), "--chat-template", "hermes"]) == 0
    check_model_folder(out)
    assert main(["unpack", str(tmp_path / "small.gguf"), "--out", str(out)]) == 2
    assert "already exists" in capsys.readouterr().err


def test_the_bundled_template_marks_all_that_the_assistant_writes(start: Path) -> None:
    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = read_template("hermes")
    renderer = Renderer(tokenizer, training_template(tokenizer))
    rendered = renderer(row(0))
    trained = [renderer.decode(tokens) for kind, tokens in spans(rendered) if kind == "trained"]
    assert trained[0] == (
        '[seek 0.3] What fails?\n<tool_call>\n{"name": "eval", "arguments": {}}\n</tool_call><|im_end|>\n'
    )
    assert len(trained) == 3
    text = renderer.decode(rendered.input_ids)
    assert text.count("<tool_response>\n[step ") == 2
    assert all(f"\n{tool['function']['name']}(" in text for tool in TOOLS)


def test_the_bundled_template_shows_tools_as_signatures(start: Path) -> None:
    place = {"type": "object", "properties": {"path": {"type": "string"}, "end": {"type": "integer"}}}
    parameters = {
        "items": {"type": "array", "items": {**place, "required": ["path"]}, "description": "where"},
        "mode": {"enum": ["all", "one"], "default": "all"},
    }
    schema = {"type": "object", "properties": parameters, "required": ["items"]}
    tools = [
        {"type": "function", "function": {"name": "mark", "description": "Mark places.", "parameters": schema}},
        {"type": "function", "function": {"name": "stop"}},
    ]
    tokenizer: Any = load_tokenizer(str(start), None)
    text = tokenizer.apply_chat_template(
        [{"role": "system", "content": "Look."}], chat_template=read_template("hermes"), tools=tools, tokenize=False
    )
    assert (
        "<tools>\n"
        'mark(items: [{path: string, end?: integer}], mode?: {"enum": ["all", "one"], "default": "all"} = "all"): '
        "Mark places.\n"
        "  items: where\n"
        "stop()\n"
        "</tools>\n"
    ) in text


def test_the_bundled_template_keeps_what_stands_in_front_as_a_conversation_grows(start: Path) -> None:
    from trl.chat_template_utils import is_chat_template_prefix_preserving, supports_tool_calling

    tokenizer: Any = load_tokenizer(str(start), None)
    tokenizer.chat_template = read_template("hermes")
    assert is_chat_template_prefix_preserving(tokenizer)
    assert supports_tool_calling(tokenizer)
    render = tokenizer.apply_chat_template
    whole = render(conversation(0), tools=TOOLS, tokenize=False)
    for cut in (2, 4, 6):
        asked = render(conversation(0)[:cut], tools=TOOLS, tokenize=False, add_generation_prompt=True)
        assert whole.startswith(asked)
