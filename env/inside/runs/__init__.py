"""Test runs that are watched, changed or traced, often in forks.

| tool | started as | how it watches |
|---|---|---|
| `suspects` | plugin or program `suspects` | `lines`: every line of the project, once per test |
| `trace` | plugin or program `trace` | `call`: one function, each line of each call with the values that change |
| `whatif`, `vary` | program `whatif` | `change` and `forks`: one fork per change, `probes` at chosen places |
| bug maker | `bugs.verifier` | `patches`: functions of loaded modules get their new code |
| test runs | plugin `outcomes`, program `unittest_runs` | outcomes only |

`lines`, `call` and `probes` share no engine, since each can leave out something else. For `lines`, a line that has run
once costs nothing more in that test. `call` leaves all other functions alone, but needs each line of its own. A probe
is a breakpoint, so its expressions mean what they mean in the debugger.
"""
