"""The dependency graph of named tasks."""

from dataclasses import dataclass
from typing import Dict, List, Tuple


class CycleError(Exception):
    """Tasks depend on each other in a circle; `path` names them, first and last the same."""

    def __init__(self, path):
        super().__init__(" -> ".join(path))
        self.path = path


@dataclass(frozen=True)
class Task:
    """A unit of work; `cost` is its duration in seconds."""

    name: str
    needs: Tuple[str, ...] = ()
    cost: int = 1


class Graph:
    """Tasks by name, with the order their dependencies impose."""

    def __init__(self, tasks):
        self._tasks: Dict[str, Task] = {}
        self._orders: Dict[str, List[str]] = {}
        for task in tasks:
            if task.name in self._tasks:
                raise ValueError("duplicate task: " + task.name)
            self._tasks[task.name] = task

    def __getitem__(self, name):
        if name not in self._tasks:
            raise KeyError("no such task: " + name)
        return self._tasks[name]

    def roots(self):
        """Return the names of the tasks that nothing needs, sorted."""
        needed = {name for task in self._tasks.values() for name in task.needs}
        return sorted(set(self._tasks) - needed)

    def order(self, target):
        """Return the names to run for `target`, dependencies first.

        Raises:
            CycleError: the dependencies form a circle.
        """
        if target not in self._orders:
            result = []
            self._visit(target, result, set(), ())
            self._orders[target] = result
        return list(self._orders[target])

    def _visit(self, name, result, done, path):
        if name in path:
            raise CycleError(path[path.index(name) :] + (name,))
        if name in done:
            return
        for need in sorted(self[name].needs):
            self._visit(need, result, done, path + (name,))
        done.add(name)
        result.append(name)
