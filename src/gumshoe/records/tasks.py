"""What a task is: the repository, the problem, the limits, and the answer apart from them."""

from __future__ import annotations

import hashlib
from typing import Literal, Self

from pydantic import Field, model_validator

from gumshoe.records.base import Record

CALLS_PER_TURN = 10


class WorkspaceSpec(Record):
    """Where the repository comes from: a folder on this machine, or a container image.

    `overlay` maps relative paths to file contents that replace those of the folder or image; None deletes the path, in
    a folder on this machine also a folder with all that it holds. A task made by changing one line of a known project
    is the project's path plus one overlay entry.
    """

    path: str | None = Field(default=None, description="folder on this machine that is copied into the sandbox")
    content: str | None = Field(default=None, description="digest of the folder's files, whose place may differ")
    image: str | None = Field(default=None, description="container image that holds the repository")
    workdir: str = Field(default="/workspace", description="root of the repository inside the sandbox")
    overlay: dict[str, str | None] = Field(default_factory=dict, description="files laid over it; None deletes")
    environment: str | None = Field(
        default=None, description="name of the environment that stands at /environment (see gumshoe harvest)"
    )
    activate: str = Field(
        default="", description="bash code run once; the variables that it sets hold for every program in the sandbox"
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if self.path is None and self.image is None:
            raise ValueError("a workspace needs a path or an image")
        return self


class Limits(Record):
    """How much an episode may use. None means no limit."""

    steps: int = Field(default=40, ge=1, description="turns of the agent, however many calls each makes")
    calls: int | None = Field(
        default=None, ge=1, description="tool calls of the whole episode; null: ten for each turn that is allowed"
    )
    command_timeout_s: float = Field(default=300.0, gt=0, description="time limit for one tool call, in seconds")
    wall_s: float | None = Field(default=None, gt=0, description="time limit for the whole episode, in seconds")
    tokens: int | None = Field(default=None, ge=1, description="tokens the policy may use, prompt and completion")

    @property
    def max_calls(self) -> int:
        """How many tool calls the episode may make."""
        return self.calls if self.calls is not None else self.steps * CALLS_PER_TURN


class Task(Record):
    """What the agent may know about a task, and nothing else. The answer is in `Oracle`, which is kept apart."""

    id: str = Field(min_length=1)
    source: str = Field(min_length=1, description="task source that made it, such as casebook or synth")
    problem_statement: str
    workspace: WorkspaceSpec
    entrypoint: tuple[str, ...] = Field(min_length=1, description="argv that runs the tests")
    debug_entrypoint: tuple[str, ...] | None = Field(default=None, description="argv to debug; None: the entrypoint")
    setup: tuple[tuple[str, ...], ...] = Field(default=(), description="commands run once before the episode")
    ignore: tuple[str, ...] = Field(default=(), description="gitignore patterns the agent cannot see")
    readonly: tuple[str, ...] = Field(default=(), description="gitignore patterns the agent cannot write")
    limits: Limits = Limits()
    regime: Literal["debug", "issue"] = Field(
        default="debug", description="debug: the failing tests are in the workspace"
    )
    tags: dict[str, str] = Field(default_factory=dict, description="facts to group by: project, operator, split")

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the canonical JSON of the task, without `tags`; if a digest of the folder's files is
        known, also without the folder's path.
        """
        placed = self if self.workspace.content is None else self._without_place()
        return hashlib.sha256(placed.model_dump_json(exclude={"tags"}).encode()).hexdigest()

    def _without_place(self) -> Task:
        return self.model_copy(update={"workspace": self.workspace.model_copy(update={"path": ""})})


class Oracle(Record):
    """The answer to a task. Only scorers and the scripted teacher see it; it never enters a sandbox."""

    task_id: str
    gold_patch: str = Field(description="unified diff that repairs the workspace")
    test_patch: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    falsifiable: dict[str, tuple[int, ...]] | None = Field(
        default=None,
        description="test functions that are known to fail on the repaired code once they ask for something else, each "
        "with the comparisons in it, by number, that can do so; null: not known",
    )
