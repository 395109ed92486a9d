"""Where tasks come from. Each source yields a `Task`, what the agent may know, and, separately, an `Oracle`.

    load_tasks(source) ─┬─> casebook, folders, checkouts ──> projects     a folder: its digest, its tests
                        ├─> swebench, swesmith, r2egym ────> rows         a row: its columns, its image
                        └─> taskset                                       what was stored before
                                 │
                                 └──> (Task, Oracle), ... ──> graded_task: as the verifier runs it

| module | holds |
|---|---|
| `load` | one way in to every source |
| `casebook`, `folders` | our own projects; a user's repository, and folders of small tasks |
| `checkouts` | QuixBugs, BugsInPy, PyTER and aider's exercises |
| `rows` | what benchmarks that come as rows share |
| `swebench`, `swesmith`, `r2egym` | what a row of each means |
| `taskset` | lists of tasks, and stored sets |
| `projects` | the projects that tasks are made from |
"""

from gumshoe.env.tasks.load import load_tasks

__all__ = ["load_tasks"]
