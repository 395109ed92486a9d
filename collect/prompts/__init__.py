"""The prompts, and how texts are made from Jinja templates."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from gumshoe.errors import ConfigError

if TYPE_CHECKING:
    import jinja2

__all__ = ["PROMPTS", "read_template", "render"]

PROMPTS = Path(__file__).parent


def read_template(path: Path) -> str:
    """The source of a template. Raises ConfigError if it cannot be read, or is not a template."""
    import jinja2

    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"the prompt template {path} cannot be read: {error}") from None
    try:
        _compiled(source)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(f"the prompt template {path} is invalid: line {error.lineno}: {error.message}") from None
    return source


@lru_cache(maxsize=16)
def _compiled(source: str) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source)


def render(source: str, **values: object) -> str:
    """The text of a template with these values. Raises ConfigError."""
    import jinja2

    try:
        return _compiled(source).render(**values).strip()
    except jinja2.TemplateError as error:
        raise ConfigError(f"the prompt template is invalid: {error}") from None
