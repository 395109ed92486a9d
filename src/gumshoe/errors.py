"""The errors that Gumshoe raises on purpose, one type per boundary; a few are private to one module.

    Exception
    ├── ToolFailure            for the model to read; becomes an observation
    └── GumshoeError           ends the rollout or the command; no observation (one exception, see below)
        ├── ConfigError        a config file, an override or a command line is wrong (exit code 2)
        ├── TaskError          a task, its repository or its image is wrong (exit code 2)
        │   └── PatchError     a patch that is to be judged does not apply
        ├── DatasetError       a dataset or a run folder is wrong (exit code 2)
        ├── SandboxError       the sandbox broke, or could not be started (exit code 2)
        │   ├── SandboxClosed  it was used after it had been closed
        │   └── WorkspaceDamaged  files cannot be put back, or too much of them was changed
        ├── PolicyError        a policy or its provider gave no usable completion
        │   ├── ContextOverflow  the conversation no longer fits the model; ends the episode as truncated
        │   └── ScriptExhausted  a scripted policy was asked for more than its script holds
        └── ServeError         a model server did not start, or died (exit code 2)

A `ToolFailure` is data: what the agent asked for could not be done, and the agent sees the error. Everything under
`GumshoeError` is about us or about the infrastructure. The two must not be mixed: our own bugs must not become
training data. The one exception is `WorkspaceDamaged`: programs that the agent ran did the damage, so the agent's
workspace turns it into a `ToolFailure`.
"""

from __future__ import annotations


class ToolFailure(Exception):
    """A tool call that could not be carried out, told to the model.

    Args:
        kind: a short stable identifier, such as `no_such_file` or `bad_arguments`.
        message: one or two sentences for the model that say what to do instead.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class GumshoeError(Exception):
    """Base of every error that ends a rollout or a command.

    `exit_code` is what the command line exits with: 2 for what the user can fix, 1 otherwise.
    """

    exit_code = 1


class ConfigError(GumshoeError):
    """A config file, an override or a command line is wrong."""

    exit_code = 2


class TaskError(GumshoeError):
    """A task, its repository or its image is wrong; the message names the task."""

    exit_code = 2


class PatchError(TaskError):
    """A patch does not apply to the repository of its task."""


class DatasetError(GumshoeError):
    """A dataset or a run folder is missing, unreadable or lacks what is needed."""

    exit_code = 2


class SandboxError(GumshoeError):
    """The sandbox broke or could not be started."""

    exit_code = 2


class SandboxClosed(SandboxError):
    """The sandbox was used after `close`."""


class WorkspaceDamaged(SandboxError):
    """Files of a sandbox cannot be read or put back after what programs have done, or too much of them was changed.

    The sandbox itself works. In an episode this is an observation.
    """


class PolicyError(GumshoeError):
    """A policy or its provider gave no usable completion."""


class ContextOverflow(PolicyError):
    """The conversation no longer fits the model's context: the episode ends as truncated."""


class ScriptExhausted(PolicyError):
    """A scripted policy was asked for one completion more than its script holds."""


class ServeError(GumshoeError):
    """A model server did not start, did not become healthy, or died."""

    exit_code = 2
