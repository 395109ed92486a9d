"""A pack as text: what the solver reads below the problem statement."""

from __future__ import annotations

from gumshoe.collect.templates import PROMPTS, read_template, render
from gumshoe.records import ContextPack, Task

__all__ = ["pack_text", "with_pack"]


def with_pack(task: Task, pack: ContextPack | None) -> Task:
    """The task with the pack written below its problem statement; unchanged if there is no pack."""
    if pack is None:
        return task
    statement = f"{task.problem_statement.strip()}\n\n{pack_text(pack)}"
    return task.model_copy(update={"problem_statement": statement})


def pack_text(pack: ContextPack, *, handed_over: bool = True) -> str:
    """The pack as it is read: hypothesis, places, what was seen, what was ruled out.

    Args:
        pack: what was found.
        handed_over: whether it goes to a solver, with the probes, which the solver may run again.
    """
    return render(read_template(PROMPTS / "pack.jinja"), pack=pack, handed_over=handed_over)
