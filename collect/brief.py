"""A pack as text: what the solver reads below the problem statement."""

from __future__ import annotations

from gumshoe.collect.templates import PROMPTS, read_template, render
from gumshoe.records import ContextPack, Finding, Task, WhatIfProbe

__all__ = ["headline", "pack_text", "with_pack"]


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


def headline(pack: ContextPack) -> str:
    """Two lines: the first place, and the words of the finding that says the most about it."""
    first = pack.locations[0]
    lines = f"{first.start}" if first.start == first.end else f"{first.start}-{first.end}"
    place = f"{first.path}:{lines}{f' in {first.symbol}' if first.symbol else ''}"
    best = max(pack.findings, key=_strength, default=None)
    return f"{place}\n{'no evidence' if best is None else best.quote}"


def _strength(finding: Finding) -> tuple[bool, bool, bool]:
    """Confirmed findings that tell failing tests from passing ones come first, those about a change before values."""
    confirmed = finding.check is not None and finding.check.status == "confirmed"
    return finding.grounded, confirmed, isinstance(finding.probe, WhatIfProbe)
