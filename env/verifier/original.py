"""A task as the verifier runs it, including what its source hides from the agent."""

from __future__ import annotations

from gumshoe.env.tasks.r2egym import grading_r2egym
from gumshoe.env.tasks.swebench import grading_swebench
from gumshoe.env.tasks.swesmith import grading_swesmith
from gumshoe.records import Oracle, Task

__all__ = ["verified_task"]


def verified_task(task: Task, oracle: Oracle) -> Task:
    """The task with the tests that decide, and a command that runs them."""
    if task.source == "swebench" and oracle.test_patch:
        return grading_swebench(task, oracle)
    if task.source == "swesmith":
        return grading_swesmith(task, oracle)
    return grading_r2egym(task) if task.source == "r2egym" else task
