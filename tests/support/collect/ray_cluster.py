"""A Ray cluster of two nodes on one machine, one of which can be killed."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

__all__ = ["TwoNodes", "two_nodes"]

STORE_BYTES = 80 << 20


class TwoNodes:
    """The address of the cluster, and how to kill its second node."""

    def __init__(self, cluster: Any, second: Any) -> None:
        self.address: str = cluster.address
        self._cluster = cluster
        self._second = second

    def kill_second(self) -> None:
        """Kills every process of the second node."""
        self._cluster.remove_node(self._second, allow_graceful=False)


@contextmanager
def two_nodes(cpus: int = 2) -> Generator[TwoNodes]:
    """Two nodes with the given number of processors each, as declared to Ray."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    options: dict[str, Any] = {"num_cpus": cpus, "object_store_memory": STORE_BYTES}
    cluster = Cluster(initialize_head=True, head_node_args={**options, "include_dashboard": False})
    try:
        yield TwoNodes(cluster, cluster.add_node(**options))
    finally:
        cluster.shutdown()
