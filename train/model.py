"""What a run starts from: the model, its tokenizer and its chat template, with errors that say what to do.

A conversation is served as it was trained: by the model's own template where that renders the same text as the one that
is trained, else by the trained one (see `template_to_serve`).
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import re
import struct
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError
from gumshoe.storage import cache_folder, in_turn, new_folder
from gumshoe.train.config import RowsConfig, TrainConfig, TrainerConfig
from gumshoe.train.rows.dataset import conversations
from gumshoe.train.rows.render import Renderer, without_empty_calls

if TYPE_CHECKING:
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_BUNDLED = Path(__file__).parent / "templates"
_COMMENT_OR_MARK = re.compile(r"\{#(-?).*?(-?)#\}|\{%(-?)\s*(?:end)?generation\s*(-?)%\}", re.DOTALL)
_DATE = re.compile(r"strftime_now\([^()]*\)")
_SAME_DATE = "'26 Jul 2024'"
"""What stands for the date, as Llama's own template has it where no clock is at hand."""
_MAGIC = b"GGUF"


def local_model(model: str) -> str:
    """The folder or hub id that transformers loads `model` from; a `.gguf` file is unpacked. Raises ConfigError."""
    return str(unpack(Path(model).expanduser())) if model.endswith(".gguf") else model


def starting_tokenizer(config: TrainerConfig) -> PreTrainedTokenizerBase:
    """The tokenizer of the config's model, with the config's chat template or the model's own. Raises ConfigError."""
    tokenizer = load_tokenizer(local_model(config.model), config.revision)
    if config.chat_template is not None:
        tokenizer.chat_template = read_template(config.chat_template)
    return tokenizer


def open_renderer(config: RowsConfig, rows: Dataset) -> Renderer:
    """Renders rows for the config's model, with the config's chat template or the model's own.

    Raises ConfigError where they cannot be read, or where the rows have tools and the template leaves them out.
    """
    tokenizer = starting_tokenizer(config)
    own = tokenizer.chat_template
    if isinstance(own, str) and next(conversations(rows)).get("tools"):
        check_tools(tokenizer, own)
    return Renderer(tokenizer, training_template(tokenizer))


def load_tokenizer(model: str, revision: str | None) -> PreTrainedTokenizerBase:
    """The tokenizer of a model folder or hub id. Raises ConfigError."""
    from transformers import AutoTokenizer

    with _loading(model):
        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision or "main")
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        # Where there are no files of it, transformers makes an empty one.
        raise ConfigError(f"model {model} has no tokenizer: it lacks tokenizer.json or another file with a vocabulary")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(model: str, config: TrainConfig) -> PreTrainedModel:
    """The model, in the precision that the config trains it in. Raises ConfigError."""
    import torch

    if config.method == "qlora":
        return load_weights(model, config.revision, dtype=torch.bfloat16, quantization_config=_four_bits())
    dtype = torch.bfloat16 if config.method == "lora" and in_bf16(config) else torch.float32
    return load_weights(model, config.revision, dtype=dtype)


def load_weights(model: str, revision: str | None, **options: Any) -> PreTrainedModel:
    """The model as it is stored, in float32 unless told otherwise. Raises ConfigError."""
    import torch
    from transformers import AutoModelForCausalLM

    with _loading(model):
        return AutoModelForCausalLM.from_pretrained(
            model, revision=revision or "main", **{"dtype": torch.float32, **options}
        )


def check_targets(model: PreTrainedModel, adapters: LoraConfig) -> None:
    """Raises ConfigError if no layer of the model has a name that the adapters target."""
    from peft.tuners.tuners_utils import check_target_module_exists

    if adapters.target_modules == "all-linear":
        return
    names = [name for name, layer in model.named_modules() if not list(layer.children())]
    if not any(check_target_module_exists(adapters, name) for name in names):
        known = ", ".join(sorted({name.rpartition(".")[2] for name in names}))
        raise ConfigError(f"lora.targets: the model has no such layer; its layers are {known}")


def merge_adapters(model: str, adapters: Path, config: TrainerConfig) -> PreTrainedModel:
    """The model with its adapters merged: on the processor, into the weights as stored, which `qlora` never changed."""
    import torch
    from peft import PeftModel

    dtype = torch.bfloat16 if in_bf16(config) else torch.float32
    merged: Any = PeftModel.from_pretrained(load_weights(model, config.revision, dtype=dtype), str(adapters))
    return merged.merge_and_unload()


def _four_bits() -> Any:
    """Settings for 4-bit weights that are computed with in bfloat16. Raises ConfigError if that is not available."""
    import torch
    from transformers import BitsAndBytesConfig

    if find_spec("bitsandbytes") is None:
        raise ConfigError("method: qlora needs bitsandbytes: pip install bitsandbytes, or use method: lora")
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


@contextmanager
def _loading(model: str) -> Generator[None]:
    """Turns whatever a damaged model makes transformers raise, which may be anything, into a ConfigError."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except Exception as error:
        is_explained = isinstance(error, (OSError, ValueError))
        reason = " ".join((str(error) if is_explained else f"{type(error).__name__}: {error}").split())
        short = reason if len(reason) <= 200 else f"{reason[:199]}…"
        raise ConfigError(
            f"model {model} cannot be loaded: give a model folder, a .gguf file, or the id of a hub model ({short})"
        ) from None


def on_accelerator(config: TrainerConfig) -> bool:
    """Whether an accelerator is used. Without one, the trainer takes `bf16` only if told that processors are meant."""
    import torch

    return config.device == "auto" and torch.accelerator.is_available()


def in_bf16(config: TrainerConfig) -> bool:
    """Whether the model is computed in bfloat16. `auto` is True if the device has instructions for it.

    Without them a processor emulates bfloat16: on an AMD EPYC with AVX2, one matrix product of SmolLM2's output layer
    (1,024 rows) took 192 s, and 0.9 s in float32. `torch.cpu.get_capabilities` names the instructions.
    """
    import torch

    if config.bf16 != "auto":
        return config.bf16
    if not on_accelerator(config):
        return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return not torch.cuda.is_available() or torch.cuda.is_bf16_supported(including_emulation=False)


def unpack(file: Path) -> Path:
    """A model folder with the weights of `file`, dequantized to bfloat16, and its tokenizer.

    It is made in the cache, once for each content, and appears there only when it is complete. Raises ConfigError for
    a file that is missing, not GGUF, or of an architecture that transformers does not read.
    """
    cache = cache_folder()
    folder = cache / "models" / f"{file.stem}-{_digest(file)}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with in_turn(cache):
        if not folder.is_dir():
            with new_folder(folder) as fresh:
                _convert(file, fresh)
    return folder


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            if opened.read(len(_MAGIC)) != _MAGIC:
                raise ConfigError(f"model {file} is not a GGUF file")
            opened.seek(0)
            return hashlib.file_digest(opened, "sha256").hexdigest()[:16]
    except OSError as error:
        raise ConfigError(f"model {file} cannot be read: {error.strerror or error}") from None


def _convert(file: Path, out: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder, name = str(file.parent), file.name
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # There is a progress bar that no setting turns off.
            model: Any = AutoModelForCausalLM.from_pretrained(
                folder, gguf_file=name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True)
            )
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    except (ImportError, OSError, ValueError, LookupError, NotImplementedError, struct.error) as error:
        raise ConfigError(f"model {file} cannot be unpacked: {' '.join(str(error).split())[:200]}") from None
    # The weights are plain now; settings that say otherwise would have them quantized again when they are saved.
    vars(model.config).pop("quantization_config", None)
    model.hf_quantizer = None
    model.save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))


def read_template(name: str) -> str:
    """The text of a bundled template (`hermes`, `llama3`), or of the file `name`. Raises ConfigError."""
    bundled = sorted(path.stem for path in _BUNDLED.glob("*.jinja"))
    path = _BUNDLED / f"{name}.jinja" if name in bundled else Path(name).expanduser()
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"chat_template: {name} cannot be read ({reason}): give a file, or one of {', '.join(bundled)}"
        ) from None


def check_tools(tokenizer: PreTrainedTokenizerBase, template: str) -> None:
    """Raises ConfigError unless `template` renders the schemas of tools, calls, the text beside them, and answers."""
    from jinja2 import TemplateError
    from trl.chat_template_utils import supports_tool_calling

    name, text = "schema_of_a_tool", "text_beside_a_call"
    schema = {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    call = {"type": "function", "function": {"name": name, "arguments": {}}}
    asked = {"role": "user", "content": ""}
    said: Any = {"role": "assistant", "content": text, "tool_calls": [call]}
    own, tokenizer.chat_template = tokenizer.chat_template, template
    keeps_text = True
    try:
        rendered = tokenizer.apply_chat_template([asked], tools=[schema], tokenize=False)
        able = name in str(rendered) and supports_tool_calling(tokenizer)
        with contextlib.suppress(TypeError):  # Some take the arguments of a call as text alone.
            keeps_text = text in str(tokenizer.apply_chat_template([asked, said], tokenize=False))
    except TemplateError as error:
        raise ConfigError(f"the chat template of {tokenizer.name_or_path} is wrong: {error}") from None
    finally:
        tokenizer.chat_template = own
    if not (able and keeps_text):
        what = "the text beside a call" if able else "tools or their calls"
        raise ConfigError(f"the chat template of {tokenizer.name_or_path} leaves out {what}: {_hint(template)}")


def _hint(template: str | None) -> str:
    """Which template to take instead of one that cannot be used."""
    name = "llama3" if template is not None and "<|start_header_id|>" in template else "hermes"
    return f"give one that has them, such as chat_template: {name}"


def training_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """The tokenizer's template with marks around what the assistant writes.

    TRL knows marked versions of the common templates; one that drops earlier reasoning is changed to keep it, since
    a conversation must not render differently when it grows. Nor may it on another day: a date is always the same.

    Raises:
        ConfigError: the tokenizer has no template, or one that is not marked and that TRL does not know.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    template = tokenizer.chat_template
    if not isinstance(template, str):
        raise ConfigError(f"the tokenizer {tokenizer.name_or_path} has no chat template: {_hint(None)}")
    try:
        patched = get_training_chat_template(tokenizer)
    except ValueError as error:
        if not has_generation_markers(template):
            raise ConfigError(
                f"the chat template of {tokenizer.name_or_path} does not mark what the assistant writes, and TRL knows "
                f"no marked version of it: put {{% generation %}} ... {{% endgeneration %}} around it, or "
                f"{_hint(template)} ({error})"
            ) from None
        patched = None
    return _DATE.sub(_SAME_DATE, patched or template)


def served_template(marked: str) -> str:
    """`marked` without its marks, for servers that do not know the tag. It renders the same text."""

    def emptied(match: re.Match[str]) -> str:
        # An empty comment trims the white space around it as the mark did. TRL finds marks in comments, too.
        return f"{{#{match[1] or match[3] or ''} {match[2] or match[4] or ''}#}}"

    return _COMMENT_OR_MARK.sub(emptied, marked)


def template_to_serve(tokenizer: PreTrainedTokenizerBase, marked: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The model's own template where it renders these rows as the `marked` one that is trained, else that one without
    its marks. Raises ConfigError where neither does.
    """
    own = tokenizer.chat_template
    for template in (own, served_template(marked), marked):
        if isinstance(template, str) and all(_same(tokenizer, template, marked, row) for row in rows):
            return template
    raise ConfigError("the chat template renders different text without its generation marks")


def _same(tokenizer: PreTrainedTokenizerBase, one: str, other: str, row: Mapping[str, Any]) -> bool:
    """Whether both templates render the conversation alike, whole and up to each point where the model is asked."""
    messages: list[dict[str, Any]] = row["messages"]
    cuts = [index for index, message in enumerate(messages) if message["role"] == "assistant"]

    def rendered(template: str, end: int, ask: bool) -> object:
        return tokenizer.apply_chat_template(
            [without_empty_calls(message) for message in messages[:end]],
            tools=row.get("tools") or None,
            chat_template=template,
            add_generation_prompt=ask,
            tokenize=False,
        )

    ends = [(len(messages), False), *((cut, True) for cut in cuts)]
    return all(rendered(one, end, ask) == rendered(other, end, ask) for end, ask in ends)


def quieten() -> None:
    """Keeps the bars and hints of the libraries off the terminal; errors stay."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import datasets
    from transformers.utils import logging as transformers_logging

    datasets.disable_progress_bars()
    transformers_logging.disable_progress_bar()
    # Users can do nothing about what the libraries tell each other about their next versions.
    warnings.filterwarnings("ignore", category=FutureWarning, module=r"(peft|transformers|trl)\b")
    logging.getLogger("trl").setLevel(logging.ERROR)
    logging.getLogger("transformers").setLevel(logging.ERROR)
