"""A pack as text: what the solver reads below the problem statement."""

from __future__ import annotations

from gumshoe.collect.templates import PROMPTS, read_template, render
from gumshoe.records import ContextPack, Task

__all__ = ["pack_text", "with_pack"]


def with_pack(task: Task, pack: ContextPack | None, template: str | None = None) -> Task:
    """The task with the pack written below its problem statement; unchanged if there is no pack.

    Raises ConfigError if the template is invalid.
    """
    if pack is None:
        return task
    statement = f"{task.problem_statement.strip()}\n\n{pack_text(pack, template=template)}".rstrip()
    return task.model_copy(update={"problem_statement": statement})


def pack_text(pack: ContextPack, *, handed_over: bool = True, template: str | None = None) -> str:
    """The pack as it is read: hypothesis, places, what was seen, what was ruled out.

    Args:
        pack: what was found.
        handed_over: whether it goes to a solver, with the probes, which the solver may run again.
        template: source of a Jinja template with the variables `pack` and `handed_over`; None: the bundled one.
    """
    source = read_template(PROMPTS / "pack.jinja") if template is None else template
    return render(source, pack=pack, handed_over=handed_over)
