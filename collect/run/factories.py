"""Which machines the environments of a run are on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from gumshoe.collect.config import RayConfig
from gumshoe.collect.episode.environments import InProcess, MakeFactory

__all__ = ["open_factories"]


@contextmanager
def open_factories(runner: str, ray: RayConfig) -> Generator[MakeFactory]:
    """What makes each worker's factory: `threads` stays in this process, `ray` uses the nodes of a cluster.

    Raises:
        ConfigError: there is no cluster.
    """
    if runner == "threads":
        yield InProcess
        return
    from gumshoe.collect.run.cluster import ray_factories

    with ray_factories(ray) as make_factory:
        yield make_factory
