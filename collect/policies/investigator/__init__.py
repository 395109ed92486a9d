"""The investigator: a strategy that knows no answer and uses no language model, and finds bugs by experiments.

| part | holds |
|---|---|
| `belief` | where the bug may be, and how likely, from what was observed |
| `looks` | what may be looked at next, and what each look is expected to tell |
| `policy` | which look is taken, and the report at the end |
| `words` | what it says: about the last answer, before a look, in the report |
"""
