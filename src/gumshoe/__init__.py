"""Gumshoe: collect debugging traces, train an info-seeking model on them, measure how much it helps.

What all folders share, and the command line. The folders themselves are linked here.

| part | holds |
|---|---|
| `records` | what is stored, sent and compared; frozen |
| `agreement` | what episodes, their evaluation and training must agree on, such as the reward |
| `protocols` | what the folders expect of each other: tools, workspaces, sandboxes, policies, scorers |
| `errors` | the errors that are raised on purpose |
| `config`, `plugins` | YAML with overrides, checked; tools, sources, policies and metrics of others |
| `storage`, `cache` | files that survive a killed process, and locks; results kept by key |
| `text`, `console`, `standard_streams` | text from outside, made safe; what is printed |
| `cli`, `commands` | the `gumshoe` command |
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
