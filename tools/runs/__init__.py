"""How programs are run in the sandbox, tests above all, and how what they leave behind is read.

| to run | module | reads its answer with |
|---|---|---|
| the test command | `scripts.read_outcomes`; `Workspace.run_tests` starts it | `tracebacks` |
| tests with lines changed, or with probes | `forked_runs` | `scripts` |
| tests with one function traced | `scripts.run_script` | `traced_calls`, `trace_comparison` |
| a program under the debugger | `debug_session` | `debugger_answers` |
| the reproduction of an issue | `reproductions` | `tracebacks` |

`interpreters` has the command lines for all of them. What comes from a sandbox was written by the code under test, or
beside it, and is checked before it is used.
"""
