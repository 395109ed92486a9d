"""A pack as text: what the solver reads below the problem statement."""

from __future__ import annotations

from pathlib import Path

import jinja2

from gumshoe.records import ContextPack, Task

__all__ = ["PROMPTS", "pack_text", "with_pack"]

PROMPTS = Path(__file__).parent / "prompts"


def with_pack(task: Task, pack: ContextPack | None) -> Task:
    """The task with the pack written below its problem statement; as it was where there is no pack."""
    if pack is None:
        return task
    statement = f"{task.problem_statement.strip()}\n\n{pack_text(pack)}"
    return task.model_copy(update={"problem_statement": statement})


def pack_text(pack: ContextPack) -> str:
    """The pack as it is read: hypothesis, places, what was seen, what was ruled out."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string((PROMPTS / "pack.jinja").read_text(encoding="utf-8")).render(pack=pack).strip()
