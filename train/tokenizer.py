"""A small tokenizer, trained on rendered conversations.

Some choices make it easy for a small model to copy what it has seen. A path is cut into the same tokens wherever it
stands, behind a space or a quotation mark. A number of up to three digits is one token, so
a line number is copied in one go. What stands in every conversation word for word (the system prompt, the tools, the
keys of a call) is one token a line or key, so that a row is mostly what differs. Everything else is byte-level BPE.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["END_OF_TEXT", "END_OF_TURN", "repeated_phrases", "train_tokenizer"]

END_OF_TEXT = "<|endoftext|>"
START_OF_TURN = "<|im_start|>"
END_OF_TURN = "<|im_end|>"
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
"""Tokens that decoding must keep: servers look for them in the text."""

NUMBERS = 400
"""Numbers below this are tokens whether they occur in the data or not."""

_MARKS = re.compile("|".join(map(re.escape, (END_OF_TEXT, START_OF_TURN, END_OF_TURN, *TAGS))))
"""What must stay a token of its own: a phrase that swallowed the end of a turn would let a model run on for ever."""

_NUMBER = r"\d{1,3}"
_PIECE = r" (?=[\w/]+\.py\b)|[ ./]?_*[A-Za-z]+|\s*\n\s*| ?[^\sA-Za-z\d]+|\s+"
_KEY = re.compile(
    r"""\{"name":\ "[a-z_]+",\ "arguments":\ (?=\{)                     # the call, up to its arguments
    | (?:[\[\]{}",\ ]*"[a-z_]+":\ ?[\[{]*)+"?                           # one value's end, up to the next
    | "?[\]}]+\n                                                        # the last value's end""",
    re.VERBOSE,
)
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_SHARE_OF_ROWS = 0.2


def train_tokenizer(texts: Sequence[str], vocab: int, template: str) -> PreTrainedTokenizerFast:
    """A tokenizer of at most `vocab` tokens.

    Args:
        texts: conversations, rendered with the template.
        vocab: most tokens, special ones, numbers and phrases included.
        template: the chat template that it carries.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    phrases = repeated_phrases(texts)
    kept = [*TAGS, *phrases]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_NUMBER), "isolated"),
            pre_tokenizers.Split(Regex(_PIECE), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab - len(kept),
        special_tokens=[END_OF_TEXT, START_OF_TURN, END_OF_TURN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_without(kept, texts), trainer)
    tokenizer.add_tokens([AddedToken(phrase, special=False, normalized=False) for phrase in kept])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END_OF_TURN, pad_token=END_OF_TEXT, chat_template=template
    )


def repeated_phrases(texts: Sequence[str]) -> list[str]:
    """What stands in the conversations word for word: lines of their common start, keys and ends of calls."""
    lines = [part for line in _common_lines(texts) for part in _MARKS.split(line) if len(part) > 8]
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update({key for call in _CALL.findall(text) for key in _KEY.findall(call)})
    keys = [key for key, count in counts.items() if count >= _SHARE_OF_ROWS * len(texts) and len(key) > 3]
    return list(dict.fromkeys([*lines, *sorted(keys)]))


def _common_lines(texts: Sequence[str]) -> list[str]:
    """The lines that all conversations begin with."""
    lines = [text.split("\n") for text in texts]
    same = takewhile(lambda column: len(set(column)) == 1, zip(*lines, strict=False))
    return [column[0] for column in same] if len(texts) > 1 else []


def _without(phrases: Iterable[str], texts: Iterable[str]) -> Iterable[str]:
    """The texts cut at the phrases, and every number that must have a token, often enough to get one."""
    pattern = re.compile("|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True)))
    for text in texts:
        yield from pattern.split(text)
    for _ in range(1000):
        yield " ".join(map(str, range(NUMBERS)))
