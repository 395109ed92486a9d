"""The source of a person's lines: a terminal with completion and history, or a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from gumshoe.collect.play.completing import Suggestion

__all__ = ["LineInput", "PipeInput", "TerminalInput"]

Suggest = Callable[[str], Iterable[Suggestion]]
END_OF_TEXT = "."


class LineInput(Protocol):
    """Asks a person for lines. Both methods return None at the end of the input."""

    def line(self, prompt: str, prefix: str = "") -> str | None:
        """One line. `prefix` is what will stand before it, for completion. Raises KeyboardInterrupt."""
        ...

    def text(self, prompt: str, initial: str) -> str | None:
        """Several lines, beginning from `initial`. Raises KeyboardInterrupt."""
        ...


class PipeInput:
    """Reads lines as they come; several lines end with a line that holds a single period."""

    def __init__(self, source: IO[str]) -> None:
        self._source = source

    def line(self, prompt: str, prefix: str = "") -> str | None:
        """The next line."""
        del prompt, prefix
        line = self._source.readline()
        return line.rstrip("\n") if line else None

    def text(self, prompt: str, initial: str) -> str | None:
        """The lines up to the period; `initial` is not used."""
        del prompt, initial
        lines: list[str] = []
        for line in self._source:
            if line.rstrip("\n") == END_OF_TEXT:
                return "\n".join(lines)
            lines.append(line.rstrip("\n"))
        return None


class TerminalInput:
    """A prompt with completion on the Tab key and the history of this session on the arrow keys.

    Args:
        suggest: what can stand at the end of a line.
    """

    def __init__(self, suggest: Suggest) -> None:
        self._suggest = suggest
        self._session: PromptSession[str] = PromptSession(history=InMemoryHistory(), complete_while_typing=False)
        self._editor: PromptSession[str] = PromptSession(multiline=True, key_bindings=_finish_with_control_d())

    def line(self, prompt: str, prefix: str = "") -> str | None:
        """One line."""
        try:
            return self._session.prompt(prompt, completer=_Completer(self._suggest, prefix))
        except EOFError:
            return None

    def text(self, prompt: str, initial: str) -> str | None:
        """Several lines, edited in place; Ctrl-D accepts them."""
        try:
            return self._editor.prompt(prompt, default=initial, prompt_continuation=" " * len(prompt))
        except EOFError:
            return None


class _Completer(Completer):
    def __init__(self, suggest: Suggest, prefix: str) -> None:
        self._suggest = suggest
        self._prefix = prefix

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        del complete_event
        for each in self._suggest(self._prefix + document.text_before_cursor):
            yield Completion(each.word, start_position=-each.replaces, display_meta=each.meaning)


def _finish_with_control_d() -> Any:
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()

    @bindings.add("c-d")
    def _(event: Any) -> None:
        event.current_buffer.validate_and_handle()

    return bindings
