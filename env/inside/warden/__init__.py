"""The warden, Gumshoe's own process inside a sandbox, and what starts and supervises programs there.

    host === warden            answers requests, one JSON line each, on a terminal that nothing else can open
             |- launcher       starts every program, so that no program is ever a copy of the warden
             |  |- supervisor  one for each program: adopts its orphans, kills all that is left, reports its end
             |  |  `- program
             |  `- supervisor
             |     `- test server       a program like any other, which has the test runner loaded
             |        `- supervisor
             |           `- program     a fork of the test server

The warden hands the launcher a program's descriptors over a socket. Two pipes remain between the warden and each
supervisor: on `status` it reports, and when `liveness` closes, because the warden wants it or is dead, it kills
everything below it. So nothing outlives the warden, and the warden ends when its terminal does.

| module | what it does |
|---|---|
| `serving` | reads requests, calls the warden, answers |
| `warden` | the operations: one public method each |
| `programs`, `sessions` | runs programs to their end; keeps programs on a terminal, with a control channel |
| `jobs` | the launcher, the test server and a running program, as the warden sees them |
| `launcher` | the process that starts programs, and the supervisor of each |
| `files`, `snapshots` | the workspace: reading, searching, keeping and putting back |
| `tampering` | what programs did to the harness, and left running |
| `disk` | how much programs have written |
| `system` | calls to the kernel, waiting, and killing all descendants |
"""
