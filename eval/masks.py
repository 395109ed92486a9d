"""What training makes of a conversation: computed by a separate program, so that this process loads no tokenizer.

It is `python -m gumshoe.train.masks MODEL`, which reads one conversation per line and answers each with a line.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from gumshoe.errors import DatasetError

OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class Masks:
    """The masks of the tokenizer and template in a folder. The program starts with the first question."""

    def __init__(self, model: Path) -> None:
        self.model = model
        self._guard = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None

    def compute(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What trains of a row with `messages` and perhaps `tools`: the answer that `gumshoe.train.masks` describes.

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
            self._end()

    def _end(self) -> str:
        """Closes the program's input, which ends it. Returns its exit code and the last line that it has printed."""
        process, self._process = self._process, None
        if process is None or self._errors is None:
            return ""
        process.communicate()
        with self._errors as errors:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines() or ["it printed nothing"]
        return f"exit code {process.returncode}: {lines[-1][:300]}"

    def _ask(self, question: str) -> dict[str, Any]:
        if self._process is None:
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _end
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gumshoe.train.masks", str(self.model)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                encoding="utf-8",
                env={**os.environ, **OFFLINE},
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
            raise DatasetError(f"the masks of {self.model} cannot be made: its program ended with {self._end()}")
        return json.loads(answer)
