"""The command lines.

| part | commands |
|---|---|
| `collect` | `gumshoe collect` |
| `debug` | `gumshoe debug`, `init` |
| `play` | `gumshoe play`; `line_input` reads and completes what a person types |
| `runs` | `gumshoe status`, `probe` |
| `data` | `gumshoe filter`, `convert`, `export` |
| `arguments` | what several commands have in common: a repository, a policy |
"""
