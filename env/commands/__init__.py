"""The command lines.

| part | commands |
|---|---|
| `tasks` | `gumshoe tasks` |
| `bugs` | `gumshoe synth`, `harvest` |
| `doctor` | `gumshoe doctor` |
"""
