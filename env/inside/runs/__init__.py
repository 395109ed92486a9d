"""Test runs that are watched, changed or traced.

| tool | program | what it does with the tests |
|---|---|---|
| `eval` | plugin `outcomes`, or `unittest_runs` | notes the outcome of each test |
| `suspects` | plugin `suspects`, or the same as a program | `lines`: notes which lines of the project each test runs |
| `trace` | `trace`, which is also the plugin | `calls`: notes what each line of one function changes |
| `whatif`, `vary` | `whatif` | `change`: runs them again and again, each time with another line changed |
| `probe`, reports | `whatif` | `probes`: looks at expressions where the program comes by |
| maker of bugs | `bugs.judge` | `lines` once, then `patches`: gives functions of loaded modules other code |

The host writes a request to a file, starts one of these programs with the test command behind `--`, and reads the JSON
lines that it leaves (`gumshoe.tools.runs`).

How each knows which test runs, and what it watches with:

| who watches | is told of tests of pytest by | of unittest and sympy's runner by | watches with |
|---|---|---|---|
| `suspects` | `outcomes.observe_pytest` | `programs.runner_hooks` | `lines`: pays for a line once per test |
| `trace` | `outcomes.observe_pytest` | `programs.runner_hooks` | `watching.watch_function`: all lines of one function |
| `probes` | `debugger.hooks` | `debugger.hooks` | breakpoints of the debugger, in a trace function of its own |
| maker of bugs | `bugs.recorder` | it runs pytest alone | `lines` |

`lines` and `watching` use `sys.monitoring`, or `sys.settrace` before Python 3.12; `probes` always the latter, so that
their expressions mean what they mean in the debugger.

- *How does it change code?* If modules are loaded, `patches` gives existing functions their new code; if not,
  `debugger.tracing.load_from` has them loaded from other code.
- *In which process?* `trace` runs the program in a fork that can be stopped; the docstrings of `whatif` and `bugs` have
  pictures of theirs. `forks` waits for forks, limits them, and ends them with all that they have started.
"""
