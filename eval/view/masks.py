"""Which tokens of a conversation train: asked of a program of its own, that alone loads a tokenizer.

It is `python -m gumshoe.train.mask_service MODEL`, which reads a conversation a line and answers with a line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gumshoe.errors import DatasetError

__all__ = ["Masks"]


class Masks:
    """The masks of one model's tokenizer and template. The program starts with the first question.

    Args:
        model: the model folder, or a folder with a tokenizer and its chat template.
    """

    def __init__(self, model: Path) -> None:
        self.model = model
        self._guard = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """`parts` as [text, kind, tokens] with the kinds of `gumshoe.train.render`, `tokens` and `trained`.

        Raises DatasetError.
        """
        with self._guard:
            answer = self._ask(json.dumps({name: row.get(name) for name in ("id", "messages", "tools")}))
        if "error" in answer:
            raise DatasetError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Ends the program. Idempotent."""
        with self._guard:
            if self._process is not None:
                self._process.communicate()
                self._process = None

    def _ask(self, question: str) -> dict[str, Any]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gumshoe.train.mask_service", str(self.model)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{question}\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self._process.wait()
            self._process = None
            raise DatasetError(f"the masks of {self.model} cannot be made: its program ended with {code}")
        return json.loads(answer)
