"""Running programs in a sandbox: what several of our own need for that, the test server, and small ones.

| module | what it is |
|---|---|
| `program` | runs a program as `python` would |
| `project` | which files are the project's; hooks into what it imports |
| `runner_hooks` | hooks into the runners of tests |
| `channel` | lines of JSON: the control channel to the host (of the debugger and the carriers), and files of records |
| `server`, `fork_safety` | the test server, which forks programs with the test runner loaded; when it must not |
| `syntax` | says whether an interpreter can parse a file |
| `mcp`, `relay` | carry the messages of an MCP server, and the HTTP requests of a program, to the host |
| `drop_privileges`, `fetch_sdist` | for sandboxes in which environments are built, without a warden |
"""
