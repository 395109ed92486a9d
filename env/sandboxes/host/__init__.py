"""What sandboxes take from this machine: programs, namespaces, filters and folders.

| module | what it does | who needs it |
|---|---|---|
| `bwrap` | finds the program `bwrap`, says why it does not work; its options | `bubblewrap`, builds of environments |
| `python_mounts` | which parts of this Python and its packages a sandbox sees | `bubblewrap`, `docker`, `open` |
| `seccomp` | the filter of system calls, of which `syscalls.txt` has the numbers | `bwrap`, `docker` |
| `owners` | who owns a container or temporary folder; removes those of dead runs | `local`, `engine` |
"""
