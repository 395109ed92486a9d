"""Where tasks come from. Each source yields a `Task`, what the agent may know, and, separately, an `Oracle`.

| module | holds |
|---|---|
| `load` | one way in to every source |
| `casebook`, `folders` | our own projects; a user's repository, and folders of small tasks |
| `checkouts` | QuixBugs, BugsInPy and PyTER |
| `rows`, `harness_rows` | published rows: reading them, and what version 5 of the harness adds |
| `swebench`, `swesmith`, `r2egym` | the benchmarks that come as rows |
| `taskset` | lists of tasks, and stored sets |
| `projects` | the projects that tasks are made from |
"""

from gumshoe.env.tasks.load import load_tasks

__all__ = ["load_tasks"]
