"""Everything that runs inside a sandbox: one package for Python 3.6 to 3.14.

The host sends all of its files to the warden when a sandbox starts (`gumshoe.env.sandboxes.channel`). The
warden runs from memory and keeps the package on disk, as `gumshoe_inside` in the sandbox's support folder, exactly as
it was sent. Imports within the package are relative, so it works under that name, under `gumshoe.env.inside` and under
any other. It needs the standard library alone, except that pytest's plugins and `bugs` import pytest, and
`programs.fetch_sdist` pip.

A folder imports what is further right; of `programs`, only the test server needs the warden's `launcher` and
`system`:

    bugs --> runs --> debugger --> programs --> warden        verdict

Against these arrows there are only names, as strings, in `programs`: the test server imports modules of `debugger` and
`runs` when it starts (`server.PROGRAMS`, `fork_safety.PLUGINS`), and whoever runs pytest has it load the plugin
`runs.outcomes` (`program.run_program`).

`values` and `functions` serve several of them, `loading` the warden and the host. Names such as `_open` and `_write`
keep what the program under test may replace, in modules that run in its process.

| process | started as | imports |
|---|---|---|
| warden | from memory | `warden` |
| launcher | from memory, by the warden | `warden.launcher` and what that imports |
| test server | `programs.server` | what its programs need, so that a fork has it: `debugger`, `runs`, a supervisor |
| debugged program | `debugger.main` | `debugger`, `programs` |
| watched, changed or traced test run | `runs.whatif`, `runs.trace`, `runs.suspects` | `runs`, `debugger`, `programs` |
| test run of pytest | plugin `runs.outcomes` or `runs.suspects` | that module and what it imports |
| test run of unittest or sympy | `runs.unittest_runs` | that module and `programs` |
| maker of bugs | `bugs.judge` | `bugs`, `runs`, `programs`; of `debugger` only `stops` |
| repair solver | `bugs.trials` | the same |
| rewriting of tests for a verdict | `verdict.variants` | `verdict`, `functions` |
| syntax tree for the host | `verdict.trees` | nothing |
| check of a file's syntax | `programs.syntax`, forked from a test server if there is one | nothing |
| carriers of messages | `programs.mcp`, `programs.relay` | `programs.channel` |
| build sandbox, without a warden | `programs.drop_privileges`, `programs.fetch_sdist`, by their paths | nothing |

A program of the package is started by `__main__`, with its module's name.
"""
