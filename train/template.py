"""The chat template: the one that is trained is the one that is served."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gumshoe.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

__all__ = ["check_tools", "read_template", "served_template", "template_to_serve", "training_template"]

_BUNDLED = Path(__file__).parent / "templates"
_COMMENT_OR_MARK = re.compile(r"\{#(-?).*?(-?)#\}|\{%(-?)\s*(?:end)?generation\s*(-?)%\}", re.DOTALL)
_HINT = "give one that has them, such as chat_template: hermes"


def read_template(name: str) -> str:
    """The text of a bundled template (`hermes`), or of the file `name`. Raises ConfigError."""
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
    """Raises ConfigError unless `template` renders the schemas of tools, calls and their answers."""
    from jinja2 import TemplateError
    from trl.chat_template_utils import supports_tool_calling

    name = "schema_of_a_tool"
    schema = {"type": "function", "function": {"name": name, "description": "", "parameters": {"type": "object"}}}
    own, tokenizer.chat_template = tokenizer.chat_template, template
    try:
        shown = tokenizer.apply_chat_template([{"role": "user", "content": ""}], tools=[schema], tokenize=False)
        able = name in str(shown) and supports_tool_calling(tokenizer)
    except TemplateError as error:
        raise ConfigError(f"the chat template of {tokenizer.name_or_path} is wrong: {error}") from None
    finally:
        tokenizer.chat_template = own
    if not able:
        raise ConfigError(f"the chat template of {tokenizer.name_or_path} leaves out tools or their calls: {_HINT}")


def training_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """The tokenizer's template with marks around what the assistant writes.

    TRL knows marked versions of the common templates; one that drops earlier reasoning is changed to keep it, since
    a conversation must not render differently when it grows.

    Raises:
        ConfigError: the tokenizer has no template, or one that is not marked and that TRL does not know.
    """
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    template = tokenizer.chat_template
    if not isinstance(template, str):
        raise ConfigError(f"the tokenizer {tokenizer.name_or_path} has no chat template: {_HINT}")
    try:
        patched = get_training_chat_template(tokenizer)
    except ValueError as error:
        if has_generation_markers(template):
            return template
        raise ConfigError(
            f"the chat template of {tokenizer.name_or_path} does not mark what the assistant writes, and TRL knows no "
            f"marked version of it: put {{% generation %}} ... {{% endgeneration %}} around it, or set "
            f"chat_template: hermes ({error})"
        ) from None
    return patched or template


def served_template(marked: str) -> str:
    """`marked` without its marks, for servers that do not know the tag. It renders the same text."""

    def emptied(match: re.Match[str]) -> str:
        # An empty comment trims the white space around it as the mark did. TRL finds marks in comments, too.
        return f"{{#{match[1] or match[3] or ''} {match[2] or match[4] or ''}#}}"

    return _COMMENT_OR_MARK.sub(emptied, marked)


def template_to_serve(tokenizer: PreTrainedTokenizerBase, marked: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The model's own template where it renders as trained, else the trained one without its marks.

    Args:
        tokenizer: tokenizer of the model.
        marked: the template that is trained.
        rows: some conversations, with `messages` and perhaps `tools`.

    Raises:
        ConfigError: neither does.
    """
    own = tokenizer.chat_template
    for template in (own, served_template(marked), marked):
        if isinstance(template, str) and all(_same(tokenizer, template, marked, row) for row in rows):
            return template
    raise ConfigError("the chat template renders different text without its generation marks")


def _same(tokenizer: PreTrainedTokenizerBase, one: str, other: str, row: Mapping[str, Any]) -> bool:
    """Whether both templates render the conversation alike, whole and up to each point where the model is asked."""
    messages: list[dict[str, str]] = row["messages"]
    cuts = [index for index, message in enumerate(messages) if message["role"] == "assistant"]

    def rendered(template: str, end: int, ask: bool) -> object:
        return tokenizer.apply_chat_template(
            messages[:end],
            tools=row.get("tools") or None,
            chat_template=template,
            add_generation_prompt=ask,
            tokenize=False,
        )

    ends = [(len(messages), False), *((cut, True) for cut in cuts)]
    return all(rendered(one, end, ask) == rendered(other, end, ask) for end, ask in ends)
