"""How programs are run in the sandbox, tests above all, and how what they leave behind is read.

| to run | use | and read its answer with |
|---|---|---|
| the test command | `Workspace.run_tests`, which asks `outcomes` how | `outcomes`, `tracebacks` |
| tests with lines changed, or with probes | `forked_runs` | `forked_runs` |
| tests whose lines are noted | `Workspace.run_tests` with a plugin, or `commands.Script` | `ranking.spectrum` |
| tests with one function traced | `commands.Script` | `traced_calls`, `trace_comparison` |
| a program under the debugger | `debug_session` | `debug_session` |
| the reproduction of an issue | `reproductions` | `tracebacks` |

`commands` reads and writes command lines, and starts our own programs in the sandbox (`gumshoe.env.inside`).
What comes from a sandbox was written by the code under test, or beside it, and is checked before it is used.
"""
