"""The policy of an arm or a solver: as configured, or a model folder that is served for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from gumshoe.collect.policies.llm import with_llm
from gumshoe.collect.policy_config import OpenAIConfig, PolicyConfig
from gumshoe.errors import ConfigError, PolicyError
from gumshoe.eval.config import EvalConfig
from gumshoe.eval.serve import ModelServer
from gumshoe.eval.serve.model_folder import check_model_folder

__all__ = ["PolicyProvider", "fingerprint"]


class PolicyProvider:
    """Makes a policy's config from what an arm or the solver names. As a context manager, it stops the server on exit.

    Args:
        config: the evaluation: its variables, and how models are served and asked.
        name: who it is, for messages.
        model: model folder, with {variables}; None where there is a policy.
        policy: who decides; None where there is a model folder.
        folder: where the server's log and its scratch files go.

    Raises:
        ServeError: there is no such model folder.
        ConfigError: a variable is not set.
    """

    def __init__(
        self, config: EvalConfig, name: str, model: str | None, policy: PolicyConfig | None, folder: Path
    ) -> None:
        self._config = config
        self._policy = with_llm(policy) if policy is not None else None
        self._folder = folder
        self._model = _model_folder(config, name, model)
        self._server: ModelServer | None = None

    @property
    def planned(self) -> PolicyConfig:
        """The policy as a run folder's config keeps it: a served model is named by its content, not by a port."""
        if self._model is not None:
            return self._served(f"{self._model} {fingerprint(self._model)}", None)
        assert self._policy is not None
        return self._policy

    @contextmanager
    def ready(self, serving: Callable[[ModelServer], None], *, idle: bool) -> Generator[PolicyConfig]:
        """The policy to ask, with the address of a server that runs until `close`; if `idle`, no server is started.

        Raises ServeError: the model cannot be served, or its server has died for good.
        """
        if self._model is None or idle:
            yield self.planned
            return
        if self._server is None:
            scratch = self._folder / "served"
            server = ModelServer(self._model, self._config.serve, log=self._folder / "server.log", scratch=scratch)
            server.start()
            self._server = server
            serving(server)
        try:
            yield self._served(self._server.model, self._server.base_url)
        except PolicyError:
            self._server.check()
            raise

    def close(self) -> None:
        """Stops the server. Idempotent."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _served(self, model: str, base_url: str | None) -> OpenAIConfig:
        """How a served model is asked: past calls as text, so that the server's template renders what was trained."""
        sampling = self._config.sampling
        return OpenAIConfig(
            model=model,
            label=str(self._model) if base_url is not None else None,
            base_url=base_url,
            syntax="template",
            tool_choice=sampling.tool_choice,
            temperature=sampling.temperature,
            max_tokens_name="max_tokens",
            max_tokens=sampling.max_tokens,
            timeout_s=sampling.timeout_s,
        )


def fingerprint(folder: Path) -> str:
    """Twelve hex digits that change when a model folder's files do: contents; for weights, both ends and the size."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.iterdir() if path.is_file()):
        size = file.stat().st_size
        digest.update(f"{file.name} {size}\n".encode())
        with file.open("rb") as opened:
            digest.update(opened.read(1 << 20))
            opened.seek(max(0, size - (1 << 20)))
            digest.update(opened.read())
    return digest.hexdigest()[:12]


def _model_folder(config: EvalConfig, name: str, model: str | None) -> Path | None:
    if model is None:
        return None
    try:
        folder = Path(config.fill(model)).expanduser()
    except ValueError as error:
        raise ConfigError(f"{name}: {error}") from None
    check_model_folder(folder)
    return folder.resolve()
