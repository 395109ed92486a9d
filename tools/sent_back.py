"""Tools that end an episode, and send what the agent hands in back once."""

from __future__ import annotations

from gumshoe.errors import ToolFailure
from gumshoe.protocols import Workspace
from gumshoe.tools.base import BaseTool

__all__ = ["SendsBackOnce"]


class SendsBackOnce(BaseTool):
    """Remembers, as part of the episode, whether it has sent something back."""

    def __init__(self) -> None:
        super().__init__()
        self._sent_back = False

    def send_back_once(self, code: str, message: str) -> None:
        """Raises ToolFailure the first time; what is handed in again is taken as it is."""
        if not self._sent_back:
            self._sent_back = True
            raise ToolFailure(code, message)

    def on_reset(self, workspace: Workspace) -> None:
        """Forgets what was sent back."""
        self._sent_back = False

    def snapshot(self, workspace: Workspace) -> object:
        """Whether something was sent back."""
        return self._sent_back

    def restore(self, state: bool, workspace: Workspace) -> None:
        """As it was."""
        self._sent_back = state
