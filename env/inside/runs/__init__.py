"""Test runs that are watched, changed or traced.

| tool | program | what it does with the tests |
|---|---|---|
| `eval` | plugin `outcomes`, or `unittest_runs` | notes the outcome of each test |
| `suspects` | plugin `suspects`, or the same as a program | `lines`: notes which lines of the project each test runs |
| `trace` | `trace`, which is also the plugin | `calls`: notes what each line of one function changes |
| `whatif`, `vary` | `whatif` | `change`: runs them again and again, each time with another line changed |
| `probe`, reports | `whatif` | `probes`: looks at expressions where the program comes by |
| maker of bugs | `bugs.judge` | `lines` once, then `patches`: gives functions of loaded modules other code |

The host writes a request to a file, starts one of these programs with the test command behind `--`, and reads what it
leaves (`gumshoe.tools.runs`): JSON lines with outcomes, calls, or what probes have seen, one JSON object from
`suspects`, and from `whatif` also `answer.json`. A plugin that pytest loads has no request: variables name the files
that it writes. `bugs.judge` has its own docstring.

How each knows which test runs, and what it watches with:

| who watches | is told of tests of pytest by | of unittest and sympy's runner by | watches with |
|---|---|---|---|
| `suspects` | `outcomes.observe_pytest` | `programs.runner_hooks` | `lines`: which ones have run, not how often |
| `trace` | `outcomes.observe_pytest` | `programs.runner_hooks` | `watching.watch_function`: all lines of one function |
| `probes` | `debugger.hooks` | `debugger.hooks` | breakpoints of the debugger, in a trace function of its own |
| maker of bugs | `bugs.recorder` | it runs pytest alone | `lines` |

*Why two ways of watching?* With `sys.monitoring`, a line that has been seen costs nothing more, but it exists only from
Python 3.12 on, and another tool may hold it: so `lines` and `watching` have a class for it, and one that does the same
with `sys.settrace`; `watching.newest` chooses. `probes` always uses `sys.settrace`, as the debugger does, so that a
place and an expression mean what they mean there.

*Why two ways of changing code?* Importing a project and collecting its tests takes far longer than one test. Where that
has been done, `patches` gives existing functions their new code: `whatif` does so with the failing tests, and the maker
of bugs. That does not change what has run at the import. So for all tests `whatif` has the changed module loaded from
its changed code (`change.install`), and the maker of bugs writes the file for what it cannot patch.

*How do the forks end?* None that runs tests returns to the code that called for it:

- `trace` runs the program in one fork, which ends with it; at the deadline, a signal has it write its calls and end.
- `whatif` runs all tests in forks that end in `_run_program`, with the program's exit code. A fault of ours is printed
  there, among what the program prints.
- Where tests are collected once and run in many forks, the plugin `outcomes.Collected` takes the place of pytest's loop
  over the tests, and forks there. Each fork raises `InChild`, which leaves the code that forks, up to `Collected`; that
  lets pytest go on, run the tests and end: in `whatif` in `_run_program`, in `bugs` in the recorder, which writes what
  it has seen and ends the process. The process that has collected runs no test itself.
- `probes` evaluates an expression with a call in a fork, which ends when it has written the value.

`forks` waits for all of these, limits them, and kills what is left of them and of all that they have started; it is the
parent that says how a fork ended (`Fork.exit_code`, `answer_of`). The docstrings of `whatif` and `bugs` have pictures.
"""
