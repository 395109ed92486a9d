"""Test runs that are watched, changed or traced.

| tool | program | what it does with the tests |
|---|---|---|
| `eval` | plugin `outcomes`, or `unittest_runs` | notes the outcome of each test |
| `suspects` | plugin `suspects`, or the same as a program | `lines`: notes which lines of the project each test runs |
| `trace` | `trace`, which is also the plugin | `call`: notes what each line of one function changes |
| `whatif`, `vary` | `whatif` | `change`: runs them again and again, each time with another line changed |
| `probe`, reports | `whatif` | `probes`: looks at expressions where the program comes by |
| maker of bugs | `bugs.verifier` | `lines` once, then `patches`: gives functions of loaded modules other code |

The host writes a request to a file, starts one of these programs with the test command behind `--`, and reads the JSON
lines that it leaves (`gumshoe.tools.runs`). Four questions have one answer each:

- *How does it know which test runs?* An observer is told: with pytest by a plugin (`outcomes.observe_pytest`), with
  unittest and sympy's runner by `programs.runner_hooks`.
- *How does it watch?* `watching` sets up `sys.monitoring` or `sys.settrace`. There are three kinds of watchers, since
  each can leave out something else: `lines` pays for a line once per test; `watch_function` for all lines of one
  function; `probes` are breakpoints of the debugger, so that their expressions mean what they mean there.
- *How does it change code?* If modules are loaded, `patches` gives existing functions their new code; if not,
  `debugger.tracing.load_from` has them loaded from other code.
- *In which process?* `trace` runs the program in a fork that can be stopped; the docstrings of `whatif` and `bugs` have
  pictures of theirs. `forks` waits for forks, limits them, and ends them with all that they have started.
"""
