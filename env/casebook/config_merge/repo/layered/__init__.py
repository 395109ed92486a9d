"""Settings in layers: later layers win over earlier ones."""

from .settings import Settings

__all__ = ["Settings"]
