"""The debugger: it runs a program in its own process, stops it, and answers the host from wherever it has stopped.

            requests                              trace functions
    host <============> Requests <--> Debugger <-------------------- the program
                                        |   ^
                     commands of a stop |   | hooks: a test begins, ends, fails
                                        v   |
                                 Commands   test runners

    ready ----"c"----> running ----a stop----> stopped ----a command that goes on----> running ----> exited

While the program is stopped, the thread that has stopped runs the host's commands; the one that lets the program go on
says how far (a `Plan`). No other thread answers, and no other process while the program lives, so a program that hangs
answers nothing until it is interrupted; when it has ended, a checkpoint that is held answers in its place.

| module | what it does |
|---|---|
| `main` | the program: starts the debugger and runs what is to be debugged; its docstring has the protocol |
| `tracer` | `Debugger`: what each trace event means, and when to stop |
| `requests` | how commands are written; the request in hand, and its answer |
| `commands`, `inspection` | the commands: those that go on, set breakpoints and travel in time; those that only look |
| `breakpoints` | breakpoints, watches and logpoints, and whether a line has one |
| `stops` | a stop and its frames; how far a step goes; what frames are at |
| `tracing` | sets the trace function as late as possible, since it slows down all code; has a table of the states |
| `files` | which files belong to the workspace, and at which of their lines a breakpoint stops |
| `checkpoints` | forks that wait, to which the program can return |
| `hooks` | has test runners tell the debugger of their tests |
"""
